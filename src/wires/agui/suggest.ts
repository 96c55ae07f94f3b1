import { isRuntimeError } from '../../core/errors.ts'
import { textOf } from '../../core/messages.ts'
import type { Caller, Runtime } from '../../core/runtime.ts'
import { contentOf, custom, endOf, event, startOf } from './events.ts'
import { fromClient } from './messages.ts'
import { type RunInput, readMessage } from './shapes.ts'

const chips = 'copilotkitSuggest'

/** One model call for suggestion chips: streamed, and kept by nobody. */
export async function* suggestion(
  runtime: Runtime,
  caller: Caller,
  agent: string,
  input: RunInput,
  signal: AbortSignal,
): AsyncGenerator<string[], void, undefined> {
  const { threadId, runId } = input
  const messageId = runtime.newId('msg')
  const about = { agent, clientId: threadId }
  yield [event('RUN_STARTED', { threadId, runId })]
  let speaks = false
  try {
    for await (const said of runtime.complete(caller, about, requestFrom(input), signal)) {
      if (said.type === 'text') {
        const piece = { kind: 'text' as const, id: messageId, text: said.text }
        yield [...(speaks ? [] : startOf(piece)), contentOf('text', messageId, said.text)]
        speaks = true
      } else if (said.type === 'call') {
        const { callId: id, name, input: text } = said
        const start = startOf({ kind: 'input', id, messageId, name, text })
        yield [...start, contentOf('input', id, text), ...endOf('input', id)]
      }
    }
    yield [...(speaks ? endOf('text', messageId) : []), event('RUN_FINISHED', { threadId, runId })]
  } catch (error) {
    if (isRuntimeError(error, 'budget_spent')) {
      const skipped = custom('handrail:skipped', { what: 'suggestions', why: error.message })
      yield [skipped, event('RUN_FINISHED', { threadId, runId })]
    } else
      yield [
        ...(speaks ? endOf('text', messageId) : []),
        event('RUN_ERROR', { message: 'There are no suggestions now.', code: 'agent_failed' }),
      ]
  }
}

function requestFrom(input: RunInput) {
  const raw = input.messages ?? []
  const messages = raw.flatMap((one, i) => fromClient(readMessage(one, i)) ?? [])
  const tools = (input.tools ?? []).map(({ name, description = '', parameters }) => ({
    name,
    description,
    parameters,
  }))
  const choice = tools.some(({ name }) => name === chips)
  return {
    system: messages.filter(({ role }) => role === 'system').map(textOf),
    messages: messages.filter(({ role }) => role !== 'system'),
    tools,
    ...(choice && { parameters: { toolChoice: { name: chips } } }),
  }
}
