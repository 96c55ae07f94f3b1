import { failureOf } from '../../core/errors.ts'
import { textOf } from '../../core/messages.ts'
import type { Caller, Runtime } from '../../core/runtime.ts'
import { emptyState } from '../../core/state.ts'
import type { RuntimeEvent } from './events.ts'
import { failedStatus } from './failures.ts'
import { parametersFrom, toolsFrom } from './input.ts'
import { fromClient } from './messages.ts'
import type { GenerateInput } from './shapes.ts'

/** Tasks, extractions and suggestions: they have no thread, and want an answer and no more. */
export function isOnce({ threadId, agentSession, metadata, forwardedParameters }: GenerateInput) {
  if (threadId || agentSession) return false
  const { toolChoice } = forwardedParameters ?? {}
  const chats = (metadata.requestType ?? 'Chat') === 'Chat'
  return !chats || toolChoice === 'function' || toolChoice === 'required'
}

/** One model call that leaves no trace. */
export async function* once(
  runtime: Runtime,
  caller: Caller,
  agent: string,
  data: GenerateInput,
  signal: AbortSignal,
): AsyncGenerator<RuntimeEvent[], void, undefined> {
  const messageId = runtime.newId('msg')
  const at = runtime.clock.now()
  const open = new Map<string, number>()
  const calls = (callId: string, name: string, args: string): RuntimeEvent[] => {
    const actionExecutionId = callId
    const start = { actionExecutionId, actionName: name, at }
    const begun = open.has(callId)
    open.set(callId, (open.get(callId) ?? 0) + args.length)
    return [
      ...(begun ? [] : [{ type: 'ActionExecutionStart', ...start } as const]),
      ...(args === '' ? [] : [{ type: 'ActionExecutionArgs', actionExecutionId, args } as const]),
    ]
  }
  let speaks = false
  try {
    for await (const event of runtime.complete(caller, { agent }, requestFrom(data), signal)) {
      if (event.type === 'text') {
        const content = { type: 'TextMessageContent', messageId, content: event.text } as const
        yield speaks ? [content] : [{ type: 'TextMessageStart', messageId, at }, content]
        speaks = true
      } else if (event.type === 'input') yield calls(event.callId, event.name, event.text)
      else if (event.type === 'call') {
        const { callId: actionExecutionId, name, input } = event
        const rest = input.slice(open.get(actionExecutionId) ?? 0)
        yield [
          ...calls(actionExecutionId, name, rest),
          { type: 'ActionExecutionEnd', actionExecutionId },
        ]
        open.delete(actionExecutionId)
      }
    }
    yield [...ends(undefined), { type: 'ResponseEnd', status: { code: 'Success' } }]
  } catch (error) {
    if (signal.aborted) return
    const failure = failureOf(error, 'agent_failed')
    yield [...ends(failure.message), { type: 'ResponseEnd', status: failedStatus(failure) }]
  }

  function* ends(failed: string | undefined): Generator<RuntimeEvent> {
    const how = failed === undefined ? {} : { failed }
    if (speaks) yield { type: 'TextMessageEnd', messageId, ...how }
    for (const actionExecutionId of open.keys())
      yield { type: 'ActionExecutionEnd', actionExecutionId, ...how }
  }
}

function requestFrom(data: GenerateInput) {
  const messages = fromClient(data.messages, emptyState(''))
  const parameters = parametersFrom(data.forwardedParameters ?? {})
  return {
    system: messages.filter(({ role }) => role === 'system').map(textOf),
    messages: messages.filter(({ role }) => role !== 'system'),
    tools: toolsFrom(data),
    ...(Object.keys(parameters).length > 0 && { parameters }),
  }
}
