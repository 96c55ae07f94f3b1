import { z } from 'zod'
import type { ClientRules, Denial } from '../core/guard.ts'
import { type Message, textOf } from '../core/messages.ts'

/** A service that judges what is said, as CopilotKit's runtime asks one. */
export interface RemoteGuard {
  url: string
  headers?: Record<string, string>
  /** Topics that it is told are allowed, and not. */
  allow?: readonly string[]
  deny?: readonly string[]
  /** Milliseconds that it has. Default 5,000. */
  timeout?: number
}

const answerSchema = z.discriminatedUnion('status', [
  z.object({ status: z.literal('allowed') }),
  z.object({ status: z.literal('denied'), reason: z.string().default('') }),
])

/** Messages before the one that is judged. */
const context = 20

/** Rejects when the service does not answer, or not what it should. */
export async function judgeRemotely(
  { url, headers = {}, timeout = 5_000 }: RemoteGuard,
  { allow, deny }: ClientRules,
  message: Message,
  before: readonly Message[],
): Promise<Denial | undefined> {
  const said = before.filter(({ role }) => role === 'user' || role === 'assistant')
  const messages = [...said.slice(-context), message].map((one) => {
    return { role: one.role, content: textOf(one) }
  })
  const input = textOf(message)
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ input, validTopics: allow, invalidTopics: deny, messages }),
    signal: AbortSignal.timeout(timeout),
    redirect: 'error', // what users say goes where the operator said, and nowhere else
  })
  if (!response.ok) throw new Error(`the guardrail service answered ${response.status}`)
  const answer = answerSchema.parse(await response.json())
  if (answer.status === 'allowed') return undefined
  return { rule: 'remote', reason: answer.reason || 'The message is not allowed here.' }
}
