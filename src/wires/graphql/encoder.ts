import type { Generated, RuntimeEvent, WholeMessage } from './events.ts'
import { failedMessage, messageSucceeded, responseStatus } from './outputs.ts'
import { multipart, partText } from './parts.ts'

/**
 * Writes the parts of a response to the one document that CopilotKit's clients send: the same as
 * the executor would give for it, but for texts that wait together, which go as one.
 */
export class Encoder {
  readonly #places = new Map<string, Place>()
  #messages = 0
  #metaEvents = 0

  head({ threadId, runId, extensions }: Generated): string {
    const api = extensions?.openaiAssistantAPI
    const assistant = api && {
      runId: api.runId ?? null,
      threadId: api.threadId ?? null,
      __typename: 'OpenAIApiAssistantAPIResponse',
    }
    const told = extensions && {
      openaiAssistantAPI: assistant ?? null,
      __typename: 'ExtensionsResponse',
    }
    const response = { threadId, runId, extensions: told, messages: [], metaEvents: [] }
    const data = { [operation]: { ...response, __typename: 'CopilotResponse' } }
    return multipart.start + partText(multipart, JSON.stringify({ data, hasNext: true }))
  }

  /** All events of a batch in one part; without events, a keep-alive. Long texts stay markers. */
  parts(events: readonly RuntimeEvent[]): string {
    return partText(multipart, this.json(events)) + (isOver(events) ? multipart.end : '')
  }

  /** The JSON of the part. */
  json(events: readonly RuntimeEvent[]): string {
    const entries = events.flatMap((event) => this.#entries(event))
    const incremental = entries.length > 0 ? `"incremental":[${entries.join()}],` : ''
    return `{${incremental}"hasNext":${!isOver(events)}}`
  }

  #entries(event: RuntimeEvent): string | string[] {
    switch (event.type) {
      case 'TextMessageContent':
        return this.#grow(event.messageId, event.content)
      case 'ActionExecutionArgs':
        return this.#grow(event.actionExecutionId, event.args)
      case 'TextMessageStart': {
        const { messageId: id, parentMessageId = null, role = 'assistant' } = event
        const said = { content: [], role, parentMessageId }
        return this.#open('TextMessageOutput', id, event.at, said)
      }
      case 'ActionExecutionStart': {
        const { actionExecutionId: id, actionName: name, parentMessageId = null } = event
        const call = { name, arguments: [], parentMessageId }
        return this.#open('ActionExecutionMessageOutput', id, event.at, call)
      }
      case 'TextMessageEnd':
        return this.#close(event.messageId, event)
      case 'ActionExecutionEnd':
        return this.#close(event.actionExecutionId, event)
      case 'ActionExecutionResult': {
        const { actionExecutionId, actionName, result, at } = event
        const id = `result-${actionExecutionId}`
        const told = { result, actionExecutionId, actionName }
        return this.#whole('ResultMessageOutput', id, at, told)
      }
      case 'AgentStateMessage': {
        const { type: _, id, at, threadId, state, running, ...rest } = event
        const told = { threadId, state, running, ...rest, role: 'assistant' }
        return this.#whole('AgentStateMessageOutput', id, at, told)
      }
      case 'MetaEvent':
        return this.#meta(event)
      case 'ResponseEnd': {
        const data = { status: responseStatus(event.status), __typename: 'CopilotResponse' }
        return `{"data":${JSON.stringify(data)},"path":["${operation}"]}`
      }
    }
  }

  #open(type: string, id: string, at: number, fields: object): string {
    const place: Place = { index: this.#messages++, type, strings: 0 }
    this.#places.set(id, place)
    const createdAt = new Date(at).toISOString()
    const item = JSON.stringify({ __typename: type, id, createdAt, ...fields })
    return `{"items":[${item}],"path":["${operation}","messages",${place.index}]}`
  }

  /** By hand: this is written for every delta. */
  #grow(id: string, text: string): string | string[] {
    const place = this.#places.get(id)
    if (!place) return []
    const at = `["${operation}","messages",${place.index},"${listOf(place)}",${place.strings++}]`
    return `{"items":[${JSON.stringify(text)}],"path":${at}}`
  }

  #close(id: string, how: { failed?: string; retracted?: true }): string[] {
    const place = this.#places.get(id)
    if (!place) return []
    this.#places.delete(id)
    const entries: string[] = []
    const path = `["${operation}","messages",${place.index}]`
    const { type } = place
    if (how.retracted && place.strings > 0) {
      // What a client has cannot be taken back, only written over; and it runs any call that it
      // knows the name of.
      const blanks = JSON.stringify(Array(place.strings).fill(''))
      const list = `["${operation}","messages",${place.index},"${listOf(place)}",0]`
      entries.push(`{"items":${blanks},"path":${list}}`)
    }
    const nameless = how.retracted && type === 'ActionExecutionMessageOutput' && { name: '' }
    const data = { ...nameless, status: messageStatus(how.failed), __typename: type }
    entries.push(`{"data":${JSON.stringify(data)},"path":${path}}`)
    return entries
  }

  #whole(type: string, id: string, at: number, fields: object): string[] {
    return [this.#open(type, id, at, fields), ...this.#close(id, {})]
  }

  #meta(event: RuntimeEvent & { type: 'MetaEvent' }): string[] {
    const path = [operation, 'metaEvents', this.#metaEvents++]
    const { type, name } = event
    if (event.name === 'LangGraphInterruptEvent') {
      const item = { type, name, value: event.value, __typename: name }
      return [JSON.stringify({ items: [item], path })]
    }
    const { value, messages } = event.data
    const whole = messages.map(wholeMessage)
    const told = { messages: whole, value, __typename: 'CopilotKitLangGraphInterruptEventData' }
    const item = { type, name, data: told, __typename: name }
    const statuses = whole.map(({ __typename }, i) => {
      const data = { status: messageStatus(), __typename }
      return JSON.stringify({ data, path: [...path, 'data', 'messages', i] })
    })
    return [JSON.stringify({ items: [item], path }), ...statuses]
  }
}

/** Whether these are the last events of a response. */
export const isOver = (events: readonly RuntimeEvent[]): boolean =>
  events.at(-1)?.type === 'ResponseEnd'

interface Place {
  index: number
  type: string
  /** How many strings its text was sent as. */
  strings: number
}

const operation = 'generateCopilotResponse'

const listOf = ({ type }: Place) => (type === 'TextMessageOutput' ? 'content' : 'arguments')

const messageStatus = (failed?: string) =>
  failed === undefined ? messageSucceeded : failedMessage(failed)

function wholeMessage(message: WholeMessage) {
  const { id, at } = message
  const base = { id, createdAt: new Date(at).toISOString() }
  if (message.type === 'text') {
    const { content, role } = message
    const said = { ...base, content: [content], role, parentMessageId: null }
    return { __typename: 'TextMessageOutput', ...said }
  }
  if (message.type === 'result') {
    const { result, actionExecutionId, actionName } = message
    return { __typename: 'ResultMessageOutput', ...base, result, actionExecutionId, actionName }
  }
  const { name, args, parentMessageId = null } = message
  const call = { ...base, name, arguments: [args], parentMessageId }
  return { __typename: 'ActionExecutionMessageOutput', ...call }
}
