import { sha256 } from '../lib/canonical.ts'
import type { Piece } from './agent.ts'
import type { Bench } from './effects.ts'
import { draft, type Usage } from './entries.ts'
import { RuntimeError } from './errors.ts'
import { longestId, type Message, type Part } from './messages.ts'
import type { ModelEvent } from './model.ts'

/** Characters that the input of one call, and a whole message, may have. */
export interface Sizes {
  input: number
  message: number
}

/** Pieces between two looks at the rest of the world: a model that never waits must not starve it. */
const burst = 32

/** The message that a model call is writing. */
export class Writing {
  /** Something came back. */
  began = false
  usage: Usage | undefined
  readonly #messageId: string
  readonly #bench: Bench
  readonly #parts: Part[] = []
  readonly #sizes: Sizes
  #text: string[] = []
  #open: 'text' | 'reasoning' | undefined
  #part: string | undefined
  #meta: Record<string, unknown> | undefined
  #ofMessage: Record<string, unknown> | undefined
  #count = 0
  /** Characters in all, and of the inputs that are being written. */
  #size = 0
  readonly #inputs = new Map<string, number>()
  readonly #halves = new Map<string, string>()
  readonly #ids = new Map<string, string>()

  /** Shown to nobody. */
  readonly #hidden: boolean

  constructor(messageId: string, bench: Bench, sizes: Sizes, hidden = false) {
    this.#messageId = messageId
    this.#bench = bench
    this.#sizes = sizes
    this.#hidden = hidden
  }

  /** Takes an event; gives a promise when the event loop should have its turn. */
  take(event: ModelEvent): Promise<void> | undefined {
    const id = this.#messageId
    this.began = true
    switch (event.type) {
      case 'text':
      case 'reasoning':
        if (event.text === '' && !event.meta) return
        if (this.#open !== event.type || this.#part !== event.part) this.#close()
        this.#open = event.type
        this.#part = event.part
        if (event.meta) this.#meta = { ...this.#meta, ...event.meta }
        if (event.text === '') return
        this.#grow(event.text.length)
        this.#say(event.type, this.#whole('', event.text))
        break
      case 'input': {
        const { name } = event
        const callId = this.#idOf(event.callId)
        const text = this.#whole(callId, event.text)
        if (text === '') return
        this.#grow(text.length)
        this.#growInput(callId, (this.#inputs.get(callId) ?? 0) + text.length)
        this.#show({ kind: 'input', id: callId, messageId: id, name, text })
        break
      }
      case 'call': {
        const { name, meta } = event
        const callId = this.#idOf(event.callId)
        const input = event.input.toWellFormed()
        if (!this.#inputs.has(callId)) this.#grow(input.length)
        this.#growInput(callId, input.length)
        this.#close()
        this.#parts.push({ type: 'call', callId, name, input, ...(meta && { meta }) })
        break
      }
      case 'usage':
        this.usage = counted(event.usage)
        break
      case 'meta':
        this.#ofMessage = { ...this.#ofMessage, ...event.meta }
    }
    if (++this.#count % burst > 0) return
    this.#bench.crash('model.pieces')
    return new Promise((resolve) => setImmediate(resolve))
  }

  finished(): Message {
    this.#close()
    const id = this.#messageId
    const meta = this.#ofMessage && { meta: this.#ofMessage }
    return { id, role: 'assistant', parts: this.#withOwnIds(), ...meta }
  }

  /** What was shown before the stop, if it says anything. Calls are left out: they were not made. */
  partial() {
    this.#close()
    this.#bench.callIds.release(this.#messageId)
    const parts = this.#parts.filter((part) => part.type !== 'call' && !isMute(part))
    const id = this.#messageId
    if (this.#hidden || parts.length === 0) return this.retraction('cancelled')
    const message: Message = { id, role: 'assistant', parts, partial: true }
    return [draft('message.added', { message, for: 'both' })]
  }

  retraction(why: string) {
    this.#bench.callIds.release(this.#messageId)
    return this.began && !this.#hidden
      ? [draft('message.retracted', { ids: [this.#messageId], why })]
      : []
  }

  #close(): void {
    const meta = this.#meta && { meta: this.#meta }
    if (this.#open && this.#halves.delete('')) this.#say(this.#open, '\ufffd')
    if (this.#open) this.#parts.push({ type: this.#open, text: this.#text.join(''), ...meta })
    this.#open = undefined
    this.#part = undefined
    this.#meta = undefined
    this.#text = []
  }

  #say(kind: 'text' | 'reasoning', text: string): void {
    if (text === '') return
    this.#text.push(text)
    this.#show({ kind, id: this.#messageId, text })
  }

  #show(piece: Piece): void {
    if (!this.#hidden) this.#bench.channel.piece(piece)
  }

  /** Providers cut where they like, also inside of a character: its first half waits for the other. */
  #whole(of: string, text: string): string {
    const all = (this.#halves.get(of) ?? '') + text
    const last = all.charCodeAt(all.length - 1)
    const half = last >= 0xd800 && last < 0xdc00 ? all.slice(-1) : ''
    if (half === '') this.#halves.delete(of)
    else this.#halves.set(of, half)
    return all.slice(0, all.length - half.length).toWellFormed()
  }

  /** What clients could not send back, providers leave out, or another call has, is given an id. */
  #idOf(callId: string): string {
    const known = this.#ids.get(callId)
    if (known !== undefined) return known
    const fits = typeof callId === 'string' && callId !== '' && callId.length <= longestId
    const own = this.#take(fits ? callId : `call_${sha256(`${this.#messageId}/${this.#ids.size}`)}`)
    this.#ids.set(callId, own)
    return own
  }

  #take(callId: string, mine?: ReadonlySet<string>): string {
    const { leg, callIds } = this.#bench
    const { calls } = leg.thread.state
    return callIds.take(callId, this.#messageId, (id) => calls.has(id) || mine?.has(id) === true)
  }

  /** Two calls of one answer may have one id too. */
  #withOwnIds(): Part[] {
    const mine = new Set<string>()
    return this.#parts.map((part) => {
      if (part.type !== 'call') return part
      const callId = mine.has(part.callId) ? this.#take(part.callId, mine) : part.callId
      mine.add(callId)
      return callId === part.callId ? part : { ...part, callId }
    })
  }

  #grow(by: number): void {
    this.#size += by
    if (this.#size > this.#sizes.message) throw new RuntimeError('answer_too_large')
  }

  #growInput(callId: string, size: number): void {
    this.#inputs.set(callId, size)
    if (size <= this.#sizes.input) return
    const told = `The model wrote more than ${this.#sizes.input} characters as the input of one call.`
    throw new RuntimeError('answer_too_large', told)
  }
}

/** Numbers of tokens, where a provider says such. */
function counted(usage: Usage): Usage {
  const fair = ([, count]: [string, unknown]) => Number.isFinite(count) && (count as number) >= 0
  return Object.fromEntries(Object.entries(usage ?? {}).filter(fair)) as Usage
}

const isMute = (part: Part): boolean => 'text' in part && part.text === ''
