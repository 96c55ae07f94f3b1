import type { GraphQLError } from 'graphql'
import { Channel } from './channel.ts'
import type { Delivery } from './delivery.ts'
import type { Generated, ResponseStatus, RuntimeEvent } from './events.ts'
import type { LongTexts } from './long-texts.ts'
import {
  actionMessage,
  failedMessage,
  messageSucceeded,
  metaEvent,
  responseStatus,
  resultMessage,
  stateMessage,
  textMessage,
} from './outputs.ts'

type Tell = (error: unknown) => GraphQLError

/**
 * A `CopilotResponse` whose fields grow as its events come. They are read once, by whichever field
 * is asked for first, at the pace of the response's reader: a status follows when the reader has
 * all that it is the status of. Markers of `long` stand for long texts.
 */
export function copilotResponse(
  generated: Generated,
  delivery: Delivery,
  long: LongTexts,
  tell: Tell,
) {
  const outputs = new Outputs(long)
  let running = false
  const run = () => {
    if (!running) void pump(generated, outputs, delivery, tell)
    running = true
    return outputs
  }
  return {
    threadId: generated.threadId,
    runId: generated.runId,
    extensions: generated.extensions,
    messages: () => run().messages.read(),
    metaEvents: () => run().metaEvents.read(),
    status: () => run().status.promise,
  }
}

async function pump(generated: Generated, outputs: Outputs, delivery: Delivery, tell: Tell) {
  await delivery.caughtUp() // the first part does not wait for events
  const status = await readAll(generated, outputs, delivery, tell)
  delivery.release()
  outputs.close(status)
  await delivery.caughtUp()
  outputs.settle()
  await delivery.caughtUp()
  outputs.end(status)
}

async function readAll(
  generated: Generated,
  outputs: Outputs,
  delivery: Delivery,
  tell: Tell,
): Promise<ResponseStatus> {
  try {
    for await (const batch of generated.events(delivery.signal)) {
      if (batch.length === 0) delivery.alive()
      for (const event of batch) {
        if (event.type === 'ResponseEnd') return event.status
        outputs.take(event)
      }
      await delivery.caughtUp()
      if (delivery.signal.aborted) break
      outputs.settle()
    }
    return interrupted
  } catch (error) {
    return delivery.signal.aborted ? interrupted : failed(tell(error))
  }
}

const interrupted: ResponseStatus = {
  code: 'Failed',
  reason: 'MESSAGE_STREAM_INTERRUPTED',
  details: { description: 'The answer broke off. Ask again.' },
}

const failed = ({ message, extensions }: GraphQLError): ResponseStatus => ({
  code: 'Failed',
  reason: 'UNKNOWN_ERROR',
  details: { description: message, originalError: { message, ...extensions } },
})

class Outputs {
  readonly messages = new Channel<object>()
  readonly metaEvents = new Channel<object>()
  readonly status = later<object>()
  readonly #open = new Map<string, Open>()
  readonly #long: LongTexts
  #settling: (() => void)[] = []

  constructor(long: LongTexts) {
    this.#long = long
  }

  take(event: Exclude<RuntimeEvent, { type: 'ResponseEnd' }>) {
    switch (event.type) {
      case 'TextMessageStart':
        return this.#start(`text ${event.messageId}`, (open) => textMessage(event, open))
      case 'TextMessageContent':
        return this.#open.get(`text ${event.messageId}`)?.pieces.push(event.content)
      case 'TextMessageEnd':
        return this.#end(`text ${event.messageId}`, statusOf(event))
      case 'ActionExecutionStart':
        return this.#start(`action ${event.actionExecutionId}`, (open) =>
          actionMessage(event, open),
        )
      case 'ActionExecutionArgs':
        return this.#open.get(`action ${event.actionExecutionId}`)?.pieces.push(event.args)
      case 'ActionExecutionEnd':
        return this.#end(`action ${event.actionExecutionId}`, statusOf(event))
      case 'ActionExecutionResult':
        return this.#whole((status) => resultMessage(event, status))
      case 'AgentStateMessage':
        return this.#whole((status) => stateMessage(this.#long.marked(event), status))
      case 'MetaEvent':
        return this.metaEvents.push(metaEvent(event))
      default:
        return unreachable(event)
    }
  }

  /** The reader has what was taken, and has asked for the fields it wants: statuses are due. */
  settle(): void {
    for (const one of [this.messages, this.metaEvents]) one.seal()
    for (const { pieces } of this.#open.values()) pieces.seal()
    const due = this.#settling
    this.#settling = []
    for (const settle of due) settle()
  }

  /** Messages that are still open end as the response does. */
  close({ code }: ResponseStatus): void {
    const status = code === 'Success' ? messageSucceeded : failedMessage('The response failed.')
    for (const key of [...this.#open.keys()]) this.#end(key, status)
  }

  end(status: ResponseStatus): void {
    this.messages.end()
    this.metaEvents.end()
    this.status.resolve(responseStatus(status))
  }

  #start(key: string, message: (open: Open) => object): void {
    const { promise, resolve } = later<object>()
    const open: Open = { pieces: new Channel(), status: promise, resolve }
    this.#open.set(key, open)
    this.messages.push(message(open))
  }

  #end(key: string, status: object): void {
    const open = this.#open.get(key)
    this.#open.delete(key)
    open?.pieces.end()
    this.#settling.push(() => open?.resolve(status))
  }

  #whole(message: (status: Promise<object>) => object): void {
    const { promise, resolve } = later<object>()
    this.messages.push(message(promise))
    this.#settling.push(() => resolve(messageSucceeded))
  }
}

interface Open {
  pieces: Channel<string>
  status: Promise<object>
  resolve(status: object): void
}

function statusOf({ failed, retracted }: { failed?: string; retracted?: true }): object {
  if (retracted) return failedMessage(failed ?? 'This message was taken back.')
  return failed === undefined ? messageSucceeded : failedMessage(failed)
}

function later<T>() {
  let resolve!: (value: T) => void
  const promise = new Promise<T>((settle) => {
    resolve = settle
  })
  return { promise, resolve }
}

function unreachable(event: never): never {
  throw new Error(`No such event: ${JSON.stringify(event)}`)
}
