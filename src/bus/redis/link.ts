import type { Piece } from '../../core/agent.ts'
import type { Tail, TailLink, TailListener } from '../../core/tail.ts'
import { type Base, type Change, encode, type Message } from './messages.ts'

/** What a link needs of its bus. */
export interface Port {
  /** Something waits to be told; soon, with what others have to tell. */
  changed(link: Link): void
  /** Tells it now. */
  flush(link: Link): void
  /** Brings what is written elsewhere, from now on or no longer. */
  follow(link: Link): void
  leave(link: Link): void
  /** The thread has entries up to `seq`. */
  moved(threadId: string, seq: number): void
}

/** A turn's news of a tail, as it goes into the stream and out to those who listen. */
export interface News {
  fence: number
  number: number
  /** It takes the place of all that the stream has. */
  base: boolean
  /** Absent when the stream has become too long: who comes late waits for the next base. */
  stored: string | undefined
  live: string
}

/** Changes that wait to be told, with their pieces; instead of more, the whole tail is told. */
const waitLimit = 5_000
/** Characters of a tail kept in Redis; more are only told to those who listen. */
const storeLimit = 8 << 20
/** A base with more characters is not told to those who listen: they look, if they need it. */
const tellLimit = 16 << 10

/**
 * Ties the tail of one thread on this server to those on the others. The server that drives is the
 * origin: it tells what is done to its tail. The others, while they have readers, are replicas: the
 * same is done to theirs, in the same order, so places in it mean the same on every server.
 */
export class Link implements TailLink, TailListener {
  readonly threadId: string
  readonly tail: Tail
  readonly #port: Port
  role: 'idle' | 'origin' | 'replica' = 'idle'
  /** The last message told or heard. */
  #fence = 0
  #number = 0
  /** Numbers of the tail's first pieces; those after them follow `#first` without a gap. */
  #numbers: number[] = []
  #first = 0
  /** What was not told yet: all of it, or these changes and the pieces from `#told` on. */
  #whole = false
  #changes: Change[] = []
  #waiting = 0
  #told = 0
  /** How much the stream has: pieces and messages, and characters. */
  #streamed = 0
  #stored = 0
  #known = false
  /** A message that could not be understood without those before it. */
  #heard = { fence: 0, number: 0 }
  /** What the origin here has told in its time: its numbers go on from there. */
  #origin = { number: 0, piece: 0 }

  constructor(threadId: string, tail: Tail, port: Port) {
    this.threadId = threadId
    this.tail = tail
    this.#port = port
  }

  get known(): boolean {
    return this.role === 'origin' || (this.role === 'replica' && this.#known)
  }

  begin(): void {
    if (this.role === 'replica') this.#port.leave(this)
    if (this.role !== 'origin') {
      this.#number = this.#origin.number
      this.#numbers = []
      this.#first = this.#origin.piece
    }
    this.#fence = this.tail.fence
    this.role = 'origin'
    this.tail.attach(this)
    this.missed()
    this.#port.changed(this)
    this.tail.wake() // whoever read what another server wrote
  }

  end(): void {
    if (this.role !== 'origin') return
    this.#port.flush(this)
    this.lose()
  }

  isWritten(fence: number): boolean {
    if (this.role === 'origin' && fence > this.tail.fence) this.lose()
    return this.role === 'origin'
  }

  read(): void {
    if (this.role === 'idle' && this.tail.readers > 0) {
      this.role = 'replica'
      this.#known = false
      this.#port.follow(this)
    } else if (this.role === 'replica' && this.tail.readers === 0) {
      this.role = 'idle'
      this.#port.leave(this)
      this.#forget()
    }
  }

  /** Another server drives, or will. */
  lose(): void {
    if (this.role !== 'origin') return
    this.role = 'idle'
    this.#origin = { number: this.#number, piece: this.#next }
    this.#changes = []
    this.tail.detach(this)
    this.read()
  }

  wake(): void {
    this.#port.changed(this)
  }

  rebase(pieces: readonly Piece[], open: (piece: Piece) => boolean): void {
    const kept: number[] = []
    for (let i = 0; i < pieces.length; i++) if (open(pieces[i]!)) kept.push(i)
    if (!this.#whole) {
      this.#collect()
      this.#changes.push({ type: 'rebase', seq: this.tail.seq, kept: keptOf(kept, pieces.length) })
      if (this.#waiting > waitLimit) this.missed()
    }
    this.#keep(kept, pieces.length)
    this.#told = kept.length
  }

  /** What was not told cannot be told any more, or did not arrive: next time, all of it. */
  missed(): void {
    this.#whole = true
    this.#changes = []
    this.#waiting = 0
  }

  /** Somebody needs the whole tail and does not find it. */
  wanted(): void {
    if (this.role !== 'origin' || this.#stored > storeLimit) return
    this.missed()
    this.#port.changed(this)
  }

  /** What waits to be told, if anything does. */
  take(): News | undefined {
    if (this.role !== 'origin') return undefined
    if (this.#whole) return this.#takeWhole()
    this.#collect()
    const changes = this.#changes
    if (changes.length === 0) return undefined
    this.#changes = []
    this.#waiting = 0
    const live = encode({ fence: this.#fence, number: ++this.#number, changes })
    const { pieces } = this.tail
    // A new base is worth it when it is no longer than what it takes the place of.
    const base =
      changes.some(({ type }) => type === 'rebase') &&
      pieces.length <= Math.max(this.#streamed, 16) / 2
    if (base) return this.#news(true, this.#encodeWhole(), live)
    this.#streamed++
    for (const change of changes) {
      if (change.type === 'pieces') this.#streamed += change.pieces.length
    }
    return this.#news(false, live, live)
  }

  /** Messages of the stream, oldest first, and what came meanwhile. False: something is missing. */
  catchUp(messages: readonly Message[]): boolean {
    for (const message of messages) this.hear(message)
    return !this.isBefore(this.#heard.fence, this.#heard.number)
  }

  isBefore(fence: number, number: number): boolean {
    return fence > this.#fence || (fence === this.#fence && number > this.#number)
  }

  /** A message of another server; `missing`: something before it is. */
  hear({ fence, number, changes }: Message): 'applied' | 'ignored' | 'missing' {
    if (this.role !== 'replica' || fence < this.#fence) return 'ignored'
    if (fence === this.#fence && number <= this.#number) {
      this.#know(number === this.#number)
      return 'ignored'
    }
    const whole = changes?.[0]?.type === 'base'
    const next = fence === this.#fence && number === this.#number + 1
    if (!changes || !(whole || next)) {
      this.#heard = { fence, number }
      return 'missing'
    }
    for (const change of changes) this.#apply(change, fence)
    this.#fence = fence
    this.#number = number
    this.#know(true)
    this.tail.wake()
    return 'applied'
  }

  #know(known: boolean): void {
    if (!known || this.#known) return
    this.#known = true
    this.tail.wake()
  }

  #apply(change: Change, fence: number): void {
    const { tail } = this
    switch (change.type) {
      case 'pieces':
        for (const piece of change.pieces) tail.push(piece)
        return
      case 'rebase': {
        const { seq, kept } = change
        const all = tail.pieces.length
        const places = kept === 'none' ? [] : kept === 'all' ? [...tail.pieces.keys()] : kept
        const open = kept === 'all' || new Set(places.map((i) => tail.pieces[i]!))
        tail.rebase(seq, (piece) => open === true || open.has(piece))
        this.#keep(places, all)
        this.#port.moved(this.threadId, seq)
        return
      }
      case 'base':
        this.#applyBase(change.base, fence)
    }
  }

  /** Pieces that are here already stay the same to their readers; the others are added. */
  #applyBase({ runId, seq, carried, numbers, next, pieces }: Base, fence: number): void {
    const { tail } = this
    if (fence !== this.#fence) this.#startAt(fence, tail.pieces.length)
    const missing = this.#next
    const stays = new Set(numbers)
    const open = new Set(tail.pieces.filter((_, i) => stays.has(this.#numberAt(i))))
    tail.fence = fence
    tail.runId = runId
    tail.rebase(seq, (piece) => open.has(piece))
    for (let i = 0; i < pieces.length; i++) if (numbers[i]! >= missing) tail.push(pieces[i]!)
    tail.carried = carried
    this.#numbers = numbers
    this.#first = next
    this.#port.moved(this.threadId, seq)
  }

  #takeWhole(): News {
    this.#whole = false
    this.#told = this.tail.pieces.length
    this.#number++
    const whole = this.#encodeWhole()
    const look = { fence: this.#fence, number: this.#number, changes: undefined }
    return this.#news(true, whole, whole.length > tellLimit ? encode(look) : whole)
  }

  #news(base: boolean, text: string, live: string): News {
    this.#stored = (base ? 0 : this.#stored) + text.length
    const fits = this.#stored <= storeLimit
    const stored = fits ? text : base ? encode({ ...this.#place, changes: undefined }) : undefined
    return { ...this.#place, base, stored, live }
  }

  get #place() {
    return { fence: this.#fence, number: this.#number }
  }

  #encodeWhole(): string {
    const { runId, seq, carried, pieces } = this.tail
    const numbers = pieces.map((_, i) => this.#numberAt(i))
    this.#streamed = pieces.length
    const base: Base = { runId, seq, carried, numbers, next: this.#next, pieces }
    return encode({ ...this.#place, changes: [{ type: 'base', base }] })
  }

  /** Pieces that nobody was told of become a change. */
  #collect(): void {
    const pieces = this.tail.pieces.slice(this.#told)
    this.#told = this.tail.pieces.length
    this.#waiting += pieces.length + 1
    if (pieces.length > 0) this.#changes.push({ type: 'pieces', pieces })
  }

  #numberAt(index: number): number {
    const { length } = this.#numbers
    return index < length ? this.#numbers[index]! : this.#first + index - length
  }

  /** The number of the next piece. */
  get #next(): number {
    return this.#numberAt(this.tail.pieces.length)
  }

  /** Of `all` pieces those at `kept` stay. */
  #keep(kept: readonly number[], all: number): void {
    const next = this.#numberAt(all)
    this.#numbers = kept.map((i) => this.#numberAt(i))
    this.#first = next
  }

  /** Counts anew; pieces that are there now are of an earlier fence and have no number in this one. */
  #startAt(fence: number, there = 0): void {
    this.#fence = fence
    this.#number = 0
    this.#numbers = Array.from({ length: there }, () => -1)
    this.#first = 0
  }

  /** Nobody reads: what comes next is not followed, so what is here would grow old. */
  #forget(): void {
    this.#startAt(0)
    this.#heard = { fence: 0, number: 0 }
    this.#known = false
    this.tail.fence = 0
    this.tail.runId = ''
    this.tail.rebase(0, () => false)
  }
}

function keptOf(kept: number[], all: number): 'all' | 'none' | number[] {
  if (kept.length === 0) return 'none'
  return kept.length === all ? 'all' : kept
}
