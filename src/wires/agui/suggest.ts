import type { Runtime } from '../../core/runtime.ts'
import { sseText } from '../sse.ts'
import { fromClient } from './messages.ts'
import type { RunInput } from './shapes.ts'

/** One model call for suggestion chips: streamed, and kept by nobody. */
export async function* suggestion(
  runtime: Runtime,
  agent: string,
  input: RunInput,
  signal: AbortSignal,
): AsyncGenerator<string, void, undefined> {
  const { threadId, runId } = input
  const frame = (event: object) => sseText('0', { data: JSON.stringify(event) })
  yield frame({ type: 'RUN_STARTED', threadId, runId })
  const messages = (input.messages ?? []).flatMap((one) => fromClient(one) ?? [])
  const tools = (input.tools ?? []).map(({ name, description = '', parameters }) => ({
    name,
    description,
    parameters,
  }))
  const choice = tools.some(({ name }) => name === 'copilotkitSuggest')
  const messageId = runtime.newId('msg')
  let text = false
  try {
    const events = runtime.complete(
      agent,
      {
        system: messages
          .filter(({ role }) => role === 'system')
          .map(({ parts }) => JSON.stringify(parts)),
        messages: messages.filter(({ role }) => role !== 'system'),
        tools,
        ...(choice && { parameters: { toolChoice: { name: 'copilotkitSuggest' } } }),
      },
      signal,
    )
    for await (const event of events) {
      if (event.type === 'text') {
        if (!text) yield frame({ type: 'TEXT_MESSAGE_START', messageId, role: 'assistant' })
        text = true
        yield frame({ type: 'TEXT_MESSAGE_CONTENT', messageId, delta: event.text })
      } else if (event.type === 'call') {
        const { callId: toolCallId, name: toolCallName, input: delta } = event
        yield frame({
          type: 'TOOL_CALL_START',
          toolCallId,
          toolCallName,
          parentMessageId: messageId,
        })
        yield frame({ type: 'TOOL_CALL_ARGS', toolCallId, delta })
        yield frame({ type: 'TOOL_CALL_END', toolCallId })
      }
    }
    if (text) yield frame({ type: 'TEXT_MESSAGE_END', messageId })
    yield frame({ type: 'RUN_FINISHED', threadId, runId })
  } catch {
    yield frame({ type: 'RUN_ERROR', message: 'No suggestions now.', code: 'agent_failed' })
  }
}
