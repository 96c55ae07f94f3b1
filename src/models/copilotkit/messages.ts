import type { ModelRequest } from '../../core/model.ts'
import { settle, type Turn } from '../settle.ts'

/** A message as service adapters read it: by its fields, or by asking it what it is. */
export class AdapterMessage {
  readonly id: string
  readonly type: 'TextMessage' | 'ActionExecutionMessage' | 'ResultMessage' | 'ImageMessage'
  readonly createdAt = new Date()
  readonly status = { code: 'Success' }

  constructor(id: string, type: AdapterMessage['type'], fields: object) {
    this.id = id
    this.type = type
    Object.assign(this, fields)
  }

  isTextMessage(): boolean {
    return this.type === 'TextMessage'
  }
  isActionExecutionMessage(): boolean {
    return this.type === 'ActionExecutionMessage'
  }
  isResultMessage(): boolean {
    return this.type === 'ResultMessage'
  }
  isImageMessage(): boolean {
    return this.type === 'ImageMessage'
  }
  isAgentStateMessage(): boolean {
    return false
  }
}

export function adapterMessages(
  request: ModelRequest,
  accepts: readonly string[],
  newId: (prefix: string) => string,
): AdapterMessage[] {
  const { system, turns } = settle(request, { accepts, flat: request.tools.length === 0 })
  const make = (type: AdapterMessage['type'], fields: object, id = newId('msg')) =>
    new AdapterMessage(id, type, fields)
  const first = system === '' ? [] : [make('TextMessage', { role: 'system', content: system })]
  return [...first, ...turns.flatMap((turn) => messagesFor(turn, make))]
}

type Make = (type: AdapterMessage['type'], fields: object, id?: string) => AdapterMessage

function messagesFor(turn: Turn, make: Make): AdapterMessage[] {
  if (turn.role === 'tool') {
    return turn.results.map(({ callId, name, text }) =>
      make('ResultMessage', { actionExecutionId: callId, actionName: name, result: text }),
    )
  }
  const { role } = turn
  return turn.parts.flatMap((part) => {
    if (part.type === 'text') return [make('TextMessage', { role, content: part.text })]
    if (part.type === 'call') {
      const call = { name: part.name, arguments: part.input }
      return [make('ActionExecutionMessage', call, part.callId)]
    }
    if (part.type !== 'media') return [] // thoughts have no place there
    const format = part.mediaType.replace(/^image\//, '')
    return [make('ImageMessage', { role, format, bytes: part.data ?? '' })]
  })
}
