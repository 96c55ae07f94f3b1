import type { AgentContext, AgentEvent } from '../../core/agent.ts'
import { AgentError, RuntimeError } from '../../core/errors.ts'
import { callsOf, type Message, textOf } from '../../core/messages.ts'
import { asked, noAccount } from './asked.ts'

interface ByTool<T> {
  tool: string
  input(account_id: string, given: Record<string, unknown>): object
  /** What comes of the tool's result, and how it is said. */
  read(
    result: T,
    account_id: string,
    given: Record<string, unknown>,
  ): { output: object; text: string }
}

/** An agent that needs no model: it makes one call, and says what came of it. */
export async function* byTool<T>(
  ctx: AgentContext,
  { tool, input, read }: ByTool<T>,
): AsyncGenerator<AgentEvent> {
  const { account_id, given, since } = asked(ctx)
  if (account_id === undefined) throw new AgentError(noAccount)
  const isCall = (one: Message) => callsOf(one).some(({ name }) => name === tool)
  if (since.some((one) => one.role === 'assistant' && !isCall(one))) return // said by an earlier leg
  // What failed is not what is wanted: whoever tries the run again wants it called again.
  const failed = new Set(since.flatMap((one) => (one.failed ? [one.callId] : [])))
  let calling = since.find((one) => isCall(one) && !failed.has(callsOf(one)[0]!.callId))
  if (!calling) {
    const callId = ctx.newId('call')
    const text = JSON.stringify(input(account_id, given))
    const part = { type: 'call' as const, callId, name: tool, input: text }
    calling = { id: ctx.newId('msg'), role: 'assistant', parts: [part] }
    yield { type: 'message', message: calling }
  }
  const calls = callsOf(calling)
  await ctx.call(calls)
  const result = ctx.messages().findLast(({ callId }) => callId === calls[0]!.callId)!
  if (result.failed) throw new RuntimeError('agent_failed', textOf(result))
  const { output, text } = read(JSON.parse(textOf(result)) as T, account_id, given)
  const parts = [{ type: 'text' as const, text }]
  const message = { id: ctx.newId('msg'), role: 'assistant' as const, parts, meta: { output } }
  yield { type: 'message', message }
}
