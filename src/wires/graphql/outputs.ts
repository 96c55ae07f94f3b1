import type { ResponseStatus, RuntimeEvent, WholeMessage } from './events.ts'

/** The objects of the schema, as values for its executor: a function is a field that takes its time. */

type Event<T extends RuntimeEvent['type']> = Extract<RuntimeEvent, { type: T }>

interface Growing {
  pieces: { read(): AsyncIterable<string> }
  status: Promise<object>
}

export const messageSucceeded = { __typename: 'SuccessMessageStatus', code: 'Success' }

export const failedMessage = (reason: string) => ({
  __typename: 'FailedMessageStatus',
  code: 'Failed',
  reason,
})

export function responseStatus(status: ResponseStatus) {
  return { __typename: `${status.code}ResponseStatus`, ...status }
}

export function textMessage(event: Event<'TextMessageStart'>, { pieces, status }: Growing) {
  return {
    __typename: 'TextMessageOutput',
    id: event.messageId,
    createdAt: new Date(event.at),
    status,
    content: () => pieces.read(),
    role: event.role ?? 'assistant',
    parentMessageId: event.parentMessageId,
  }
}

export function actionMessage(event: Event<'ActionExecutionStart'>, { pieces, status }: Growing) {
  return {
    __typename: 'ActionExecutionMessageOutput',
    id: event.actionExecutionId,
    createdAt: new Date(event.at),
    status,
    name: event.actionName,
    arguments: () => pieces.read(),
    parentMessageId: event.parentMessageId,
  }
}

export function resultMessage(event: Event<'ActionExecutionResult'>, status: Promise<object>) {
  return {
    __typename: 'ResultMessageOutput',
    id: `result-${event.actionExecutionId}`,
    createdAt: new Date(event.at),
    status,
    actionExecutionId: event.actionExecutionId,
    actionName: event.actionName,
    result: event.result,
  }
}

export function stateMessage(event: Event<'AgentStateMessage'>, status: Promise<object>) {
  const { type: _, at, ...fields } = event
  return {
    __typename: 'AgentStateMessageOutput',
    createdAt: new Date(at),
    status,
    role: 'assistant',
    ...fields,
  }
}

export function metaEvent(event: Event<'MetaEvent'>) {
  const { name } = event
  const head = { __typename: name, type: 'MetaEvent', name, response: null }
  if (name === 'LangGraphInterruptEvent') return { ...head, value: event.value }
  const { value, messages } = event.data
  return { ...head, data: { value, messages: messages.map(wholeMessage) } }
}

function wholeMessage(message: WholeMessage) {
  const { id, at } = message
  const head = { id, createdAt: new Date(at), status: messageSucceeded }
  switch (message.type) {
    case 'text': {
      const { content, role } = message
      return { __typename: 'TextMessageOutput', ...head, content: [content], role }
    }
    case 'action': {
      const { name, args, parentMessageId } = message
      const fields = { name, arguments: [args], parentMessageId }
      return { __typename: 'ActionExecutionMessageOutput', ...head, ...fields }
    }
    case 'result': {
      const { actionExecutionId, actionName, result } = message
      const fields = { actionExecutionId, actionName, result }
      return { __typename: 'ResultMessageOutput', ...head, ...fields }
    }
  }
}
