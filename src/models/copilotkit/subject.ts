import type { ModelEvent, ModelRequest } from '../../core/model.ts'
import { safeName } from '../safe.ts'

type Fields = Record<string, unknown>

/** What an adapter writes to; what it has written is read as our events. */
export class EventSubject {
  readonly #queue: ModelEvent[] = []
  readonly #names: Map<string, string>
  readonly #calls = new Map<string, { name: string; input: string }>()
  #over: { error?: unknown } | undefined
  #wake: () => void = () => {}

  constructor({ tools }: Pick<ModelRequest, 'tools'>) {
    this.#names = new Map(tools.map(({ name }) => [safeName(name), name]))
  }

  sendTextMessageStart(_: Fields): void {}
  sendTextMessageContent({ content, messageId }: Fields): void {
    this.#push({ type: 'text', text: String(content ?? ''), part: String(messageId ?? '') })
  }
  sendTextMessageEnd(_: Fields): void {}
  sendTextMessage(messageId: string, content: string): void {
    this.sendTextMessageContent({ messageId, content })
  }
  sendActionExecutionStart({ actionExecutionId, actionName }: Fields): void {
    const name = String(actionName ?? '')
    this.#calls.set(String(actionExecutionId), { name: this.#names.get(name) ?? name, input: '' })
  }
  sendActionExecutionArgs({ actionExecutionId, args }: Fields): void {
    const callId = String(actionExecutionId)
    const call = this.#calls.get(callId)
    if (!call) return
    const text = String(args ?? '')
    call.input += text
    this.#push({ type: 'input', callId, name: call.name, text })
  }
  sendActionExecutionEnd({ actionExecutionId }: Fields): void {
    const callId = String(actionExecutionId)
    const call = this.#calls.get(callId)
    if (call) this.#push({ type: 'call', callId, ...call })
    this.#calls.delete(callId)
  }
  sendActionExecution(call: Fields): void {
    this.sendActionExecutionStart(call)
    this.sendActionExecutionArgs(call)
    this.sendActionExecutionEnd(call)
  }
  sendActionExecutionResult(_: Fields): void {}
  sendAgentStateMessage(_: Fields): void {}
  sendMetaEvent(_: Fields): void {}

  /** An event in the form of the runtime that these adapters were written for. */
  next(event: Fields & { type?: unknown }): void {
    const send = (this as unknown as Record<string, unknown>)[`send${String(event.type)}`]
    if (typeof send === 'function') send.call(this, event)
  }
  complete(): void {
    this.#end({})
  }
  error(error: unknown): void {
    this.#end({ error })
  }

  async *events(): AsyncGenerator<ModelEvent, void, undefined> {
    for (;;) {
      yield* this.#queue.splice(0)
      if (this.#queue.length > 0) continue
      if (this.#over) break
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
    if ('error' in this.#over) throw this.#over.error
    // A call that was begun and not ended was cut by whoever wrote it: the model hears it.
    for (const [callId, call] of this.#calls) yield { type: 'call', callId, ...call }
  }

  #push(event: ModelEvent): void {
    this.#queue.push(event)
    this.#wake()
  }

  #end(over: { error?: unknown }): void {
    this.#over ??= over
    this.#wake()
  }
}
