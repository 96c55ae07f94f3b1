import type { AgentContext } from '../../core/agent.ts'
import { type Message, textOf } from '../../core/messages.ts'
import { readFenced } from '../../lib/fenced.ts'

/** What one of these agents is asked: by the orchestrator in a block of JSON, by people in a sentence. */
export interface Asked {
  account_id: string | undefined
  /** All that was given. */
  given: Record<string, unknown>
  /** What was said since. */
  since: readonly Message[]
}

export function asked(ctx: Pick<AgentContext, 'messages' | 'options'>): Asked {
  const messages = ctx.messages()
  const at = messages.findLastIndex(({ role }) => role === 'user')
  const text = at < 0 ? '' : textOf(messages[at]!)
  const read = readFenced(text)
  const given = (typeof read === 'object' && read !== null ? read : {}) as Record<string, unknown>
  const { account_id = ctx.options.forwarded?.account_id } = given
  const named = typeof account_id === 'string' && account_id !== '' ? account_id : accountIn(text)
  return { account_id: named, given, since: messages.slice(at + 1) }
}

/** An id of the sample CRM, or one of Zoho's. */
export const accountIn = (text: string): string | undefined =>
  /\bACC-\d{3}\b/i.exec(text)?.[0].toUpperCase() ?? /\b\d{15,20}\b/.exec(text)?.[0]

export const noAccount = 'Name an account, like ACC-001.'
