import type { Piece } from '../../core/agent.ts'
import { contentOf, endOf, openId, startOf } from './events.ts'

interface Open {
  kind: Piece['kind']
  /** Characters sent. */
  sent: number
}

/** What a client was begun to be told, piece by piece, and how much of it. Ids are AG-UI's. */
export class Opened {
  readonly #open = new Map<string, Open>()
  /** Reasoning that was closed when its message began to speak. */
  readonly #thought = new Map<string, Open>()

  /** Whether anything of this was told and is not finished. */
  has(id: string): boolean {
    return this.#open.has(id) || this.#thought.has(id)
  }

  sent(id: string): number | undefined {
    return (this.#open.get(id) ?? this.#thought.get(id))?.sent
  }

  /** A call whose arguments are not all there yet. */
  get calling(): boolean {
    return [...this.#open.values()].some(({ kind }) => kind === 'input')
  }

  /** Opens what the piece belongs to, without its text. */
  start(piece: Piece): string[] {
    const id = openId(piece)
    if (this.#open.has(id) || piece.kind === 'output') return []
    // A message is thought first and said then: what was thought is over when it speaks or calls.
    const before = piece.kind === 'reasoning' ? [] : this.#closeThoughts()
    this.#open.set(id, this.#thought.get(id) ?? { kind: piece.kind, sent: 0 })
    this.#thought.delete(id)
    return [...before, ...startOf(piece)]
  }

  /** Counts characters that the client has by other means: those of the piece, or `length`. */
  count(piece: Piece, length = piece.text.length): void {
    const open = this.#open.get(openId(piece))
    if (open) open.sent += length
  }

  piece(piece: Piece): string[] {
    const events = this.start(piece)
    this.count(piece)
    return [...events, contentOf(piece.kind, openId(piece), piece.text)]
  }

  /** Counts pieces that were made for another reader. False: something must be opened first. */
  takes(counts: ReadonlyMap<string, number>): boolean {
    for (const id of counts.keys()) if (!this.#open.has(id)) return false
    for (const [id, sent] of counts) this.#open.get(id)!.sent += sent
    return true
  }

  /** The whole is there: what was not sent of it yet, and its end. */
  finish(piece: Piece): string[] {
    const id = openId(piece)
    const known = this.has(id)
    const left = piece.text.slice(this.sent(id) ?? 0)
    if (left === '' && (known ? !this.#open.has(id) : piece.kind !== 'input')) {
      this.#thought.delete(id)
      return []
    }
    const events = left === '' ? this.start(piece) : this.piece({ ...piece, text: left })
    return [...events, ...this.close(id)]
  }

  close(id: string): string[] {
    const open = this.#open.get(id)
    this.#open.delete(id)
    this.#thought.delete(id)
    return open ? endOf(open.kind, id) : []
  }

  closeAll(unless: (id: string) => boolean = () => false): string[] {
    return [...this.#open.keys()].filter((id) => !unless(id)).flatMap((id) => this.close(id))
  }

  #closeThoughts(): string[] {
    const events: string[] = []
    for (const [id, open] of this.#open) {
      if (open.kind !== 'reasoning') continue
      events.push(...this.close(id))
      this.#thought.set(id, open)
    }
    return events
  }
}
