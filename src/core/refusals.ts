import { RuntimeError } from './errors.ts'
import type { Caller } from './runtime.ts'
import type { ThreadState } from './state.ts'
import type { Log } from './worker.ts'

/** What an answer was meant for, as its sender calls it. */
export interface Meant {
  thread?: string
  ask?: string
}

/**
 * Notes answers that were not taken: invented, another's, changed, or too late. Operators look for these
 * lines. What was answered is not in them, only who sent it, by which wire, and why it changed nothing.
 */
export function refusals(log: Log) {
  const line = ({ tenant, user, wire }: Caller, { thread, ask }: Meant) => ({
    ...{ tenant, user, wire },
    ...(thread !== undefined && { thread: thread.slice(0, 200) }),
    ...(ask !== undefined && { ask: ask.slice(0, 200) }),
  })
  return {
    refused(caller: Caller, meant: Meant, error: unknown): void {
      if (!(error instanceof RuntimeError) || error.status >= 500) return // not about the answer
      const { code, message } = error
      log.warn({ ...line(caller, meant), code, reason: message.slice(0, 300) }, 'answer refused')
    },
    /** It was settled before: a reply that says so is all that came of it. */
    late(caller: Caller, meant: Meant): void {
      log.info({ ...line(caller, meant), code: 'ask_settled' }, 'answer changed nothing')
    },
  }
}

/** Whether the result of a call is for a question that was settled before: it comes too late, or again. */
export function isSettled({ asks }: ThreadState, callId: string | undefined): boolean {
  if (callId === undefined) return false
  const own = asks.get(callId)
  if (own) return own.answer !== null
  const asked = [...asks.values()].filter(
    ({ ask }) => ask.kind === 'client_tool' && ask.callId === callId,
  )
  return asked.length > 0 && asked.every(({ answer }) => answer !== null)
}
