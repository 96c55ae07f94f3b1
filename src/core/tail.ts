import type { Piece } from './agent.ts'
import type { Draft } from './entries.ts'
import { callsOf } from './messages.ts'

/**
 * The live tail of one thread: the pieces written since its last durable entry. A piece is kept
 * until the message it belongs to is an entry, so a reader that comes late misses nothing.
 */
export class Tail {
  /** The driver that writes, the run it writes for, and the seq the offsets count from. */
  fence = 0
  runId = ''
  seq = 0
  /** How many of the pieces are older than `seq`: readers may have had them before that entry. */
  carried = 0
  readonly pieces: Piece[] = []
  /** The last text made of pieces, by dialect: readers that keep pace share it. */
  readonly made = new Map<string, Made>()
  /** Where there are other servers: how the tail gets to them, and theirs here. */
  link: TailLink | undefined
  readonly #listeners = new Set<TailListener>()
  #readers = 0
  /** The last answer of `sentBefore`. */
  #counted: { offset: number; sent: ReadonlyMap<string, number> } | undefined
  /** Turns of the event loop until the readers are woken; 0: nobody is about to be. */
  #turns = 0
  #next: NodeJS.Immediate | undefined

  /** A new driver on this server: what an earlier one had not finished will never be. */
  begin(fence: number, runId: string, seq: number): void {
    this.fence = fence
    this.runId = runId
    this.rebase(seq, () => false)
    this.link?.begin()
  }

  push(piece: Piece): void {
    this.pieces.push(piece)
    this.#wakeIn(this.pieces.length === 1 ? 1 : patience)
  }

  /**
   * Entries up to `seq` are durable; the last driver among their writers was `fence`. `closed` are
   * the messages and calls that need no pieces any more; without it, all of them.
   */
  commit(seq: number, closed?: ReadonlySet<string>, fence = 0): void {
    if (this.link && !this.link.isWritten(fence)) {
      this.wake() // it moves with what comes from where it is written; the entries are here
      return
    }
    if (seq <= this.seq) return
    this.rebase(
      seq,
      ({ id, messageId }) =>
        closed !== undefined &&
        !closed.has(id) &&
        (messageId === undefined || !closed.has(messageId)),
    )
    this.wake()
    if (closed === undefined) this.link?.end()
  }

  /** The pieces since `seq`, and those older ones that stay open. */
  rebase(seq: number, open: (piece: Piece) => boolean): void {
    this.seq = seq
    this.#counted = undefined
    for (const listener of this.#listeners) listener.rebase(this.pieces, open)
    let kept = 0
    for (const piece of this.pieces) if (open(piece)) this.pieces[kept++] = piece
    this.pieces.length = kept
    this.carried = kept
    this.made.clear()
  }

  /** False while the tail is another server's and what is written there is not known here yet. */
  get known(): boolean {
    return this.link?.known ?? true
  }

  /** Characters of the first so many pieces, by `shownKey`. Counted once for readers that keep pace. */
  sentBefore(offset: number): ReadonlyMap<string, number> {
    if (offset === 0) return nothing
    const last = this.#counted
    if (last?.offset === offset) return last.sent
    const sent = new Map(last && last.offset < offset ? last.sent : nothing)
    for (let i = last && last.offset < offset ? last.offset : 0; i < offset; i++) {
      const { kind, id, text } = this.pieces[i]!
      const key = shownKey(kind, id)
      sent.set(key, (sent.get(key) ?? 0) + text.length)
    }
    this.#counted = { offset, sent }
    return sent
  }

  /** What is being written now. */
  open(): Set<string> {
    return new Set(this.pieces.map(({ id }) => id))
  }

  reader(): TailReader {
    const reader = new TailReader(this, () => {
      if (!this.detach(reader)) return
      this.#readers--
      this.link?.read()
    })
    this.attach(reader)
    this.#readers++
    this.link?.read()
    return reader
  }

  attach(listener: TailListener): void {
    this.#listeners.add(listener)
  }

  detach(listener: TailListener): boolean {
    return this.#listeners.delete(listener)
  }

  get readers(): number {
    return this.#readers
  }

  /** Wakes all readers that wait, in the next turn of the event loop. */
  wake(): void {
    this.#wakeIn(1)
  }

  /**
   * Wakes readers of pieces now: a message is about to be written, and who keeps pace is to have every
   * piece of it before it is durable and its pieces go.
   */
  flush(): void {
    if (this.#turns === 0) return
    clearImmediate(this.#next)
    this.#turns = 1
    this.#turn()
  }

  #wakeIn(turns: number): void {
    if (this.#turns > 0) this.#turns = Math.min(this.#turns, turns)
    else if (this.#listeners.size > 0) {
      this.#turns = turns
      this.#next = setImmediate(this.#turn)
    }
  }

  readonly #turn = (): void => {
    if (--this.#turns > 0) this.#next = setImmediate(this.#turn)
    else for (const listener of this.#listeners) listener.wake()
  }
}

/**
 * Turns of the event loop in which pieces are collected. Where there is little to do they take no
 * time that anybody could notice; where there is much, what came in them is written at once.
 */
const patience = 4

/** Told of what happens to a tail. */
export interface TailListener {
  /** There is something new; however much is pushed, at most once in a turn of the event loop, and when it is flushed. */
  wake(): void
  /** The tail starts anew after `tail.seq`: of these pieces, those that are `open` stay. */
  rebase(pieces: readonly Piece[], open: (piece: Piece) => boolean): void
}

/** What a bus of many servers does with a tail. */
export interface TailLink {
  /** See `Tail.known`. */
  readonly known: boolean
  /** A driver on this server has begun: the tail is written here from now on. */
  begin(): void
  /** The leg is over: the next may be driven elsewhere. */
  end(): void
  /** Whether the tail is still written here, now that there are entries of the driver `fence`. */
  isWritten(fence: number): boolean
  /** `tail.readers` has changed. */
  read(): void
}

/** Messages and calls that need no pieces any more once these are durable. */
export function closedBy(entries: readonly Pick<Draft, 'kind' | 'body'>[]): Set<string> {
  const closed = new Set<string>()
  for (const entry of entries as readonly Draft[]) {
    if (entry.kind === 'message.added') {
      const { message } = entry.body
      closed.add(message.id)
      for (const call of callsOf(message)) closed.add(call.callId)
      if (message.callId) closed.add(message.callId)
    }
    if (entry.kind === 'message.retracted') for (const id of entry.body.ids) closed.add(id)
  }
  return closed
}

/** Text of the `count` pieces from `from` on, in the tail after `seq` that this `fence` writes. */
export interface Made {
  seq: number
  fence: number
  from: number
  count: number
  text: string
  /** Characters in it, by what they are of. */
  counts?: ReadonlyMap<string, number>
  /** The place after the last of them. */
  place?: string
}

/** The key under which `TailReader.shown` counts the characters of one message or call. */
export const shownKey = (kind: Piece['kind'], id: string): string => `${kind}:${id}`

/** All keys of a message or call. */
export const shownKeys = (id: string): string[] =>
  (['text', 'reasoning', 'input', 'output'] as const).map((kind) => shownKey(kind, id))

const nothing: ReadonlyMap<string, number> = new Map()

/** A reader's place in the tail, and how much it was shown of what is still open. */
export class TailReader implements TailListener {
  readonly tail: Tail
  /** Pieces taken since `tail.seq`. */
  offset = 0
  /** Characters shown of what became an entry, by `shownKey`, until the reader has that entry. */
  readonly shown = new Map<string, number>()
  /** Messages and calls whose entries the reader has, and whose pieces a copy of the tail still holds. */
  readonly #closed = new Set<string>()
  readonly close: () => void
  #wake: (() => void) | undefined
  #woken = false

  constructor(tail: Tail, close: () => void) {
    this.tail = tail
    this.close = () => {
      close()
      this.wake()
    }
  }

  wake(): void {
    this.#woken = true
    this.#wake?.()
  }

  /** Resolves at the next `wake()`, or at once if there was one since the last wait. */
  wait(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = () => {
        this.#wake = undefined
        this.#woken = false
        resolve()
      }
      if (this.#woken) this.#wake()
    })
  }

  /** Characters that the reader was sent of messages and calls whose entries it does not have. */
  sent(): ReadonlyMap<string, number> {
    const open = this.tail.sentBefore(this.offset)
    if (this.shown.size === 0 && this.#closed.size === 0) return open
    const sent = new Map([...this.shown, ...open])
    for (const id of this.#closed) for (const key of shownKeys(id)) sent.delete(key)
    return sent
  }

  /** The reader has the entry of this message or call. */
  forget(id: string): void {
    const open = this.tail.sentBefore(this.offset)
    for (const key of shownKeys(id)) {
      this.shown.delete(key)
      if (open.has(key)) this.#closed.add(id)
    }
  }

  /** The tail starts anew: pieces of what stays open keep their order, the others are gone. */
  rebase(pieces: readonly Piece[], open: (piece: Piece) => boolean): void {
    let kept = 0
    let last: Piece | undefined
    let characters = 0
    const stay = new Set<string>()
    for (let i = 0; i < this.offset && i < pieces.length; i++) {
      const piece = pieces[i]!
      if (open(piece)) {
        kept++
        if (this.#closed.size > 0) stay.add(piece.id)
        continue
      }
      if (this.#closed.has(piece.id)) continue
      if (last && (last.id !== piece.id || last.kind !== piece.kind)) {
        this.#show(last, characters)
        characters = 0
      }
      last = piece
      characters += piece.text.length
    }
    if (last) this.#show(last, characters)
    this.offset = kept
    for (const id of this.#closed) if (!stay.has(id)) this.#closed.delete(id)
  }

  #show({ kind, id }: Piece, characters: number): void {
    const key = shownKey(kind, id)
    this.shown.set(key, (this.shown.get(key) ?? 0) + characters)
  }
}
