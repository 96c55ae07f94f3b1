import type { Piece } from '../../core/agent.ts'

/**
 * What servers tell each other of a tail. A message is all that happened in one turn of the writer's
 * event loop; `number` counts the messages of one fence. Without changes it says: look in the stream.
 */
export interface Message {
  fence: number
  number: number
  changes: Change[] | undefined
}

export type Change =
  | { type: 'pieces'; pieces: Piece[] }
  /** The tail starts anew after `seq`; of its pieces those at `kept` stay. */
  | { type: 'rebase'; seq: number; kept: 'all' | 'none' | number[] }
  /** The tail as it is, whatever was told before. */
  | { type: 'base'; base: Base }

export interface Base {
  runId: string
  seq: number
  /** How many of the pieces are older than `seq`. */
  carried: number
  /** Every piece that is written under a fence has a number: those of `pieces`, and of the next. */
  numbers: number[]
  next: number
  pieces: Piece[]
}

export function encode({ fence, number, changes }: Message): string {
  return JSON.stringify(changes ? [fence, number, changes.map(packed)] : [fence, number])
}

/** Undefined for what is not a message: keys and channels are open to whoever shares the Redis. */
export function decode(text: string): Message | undefined {
  try {
    const [fence, number, changes] = JSON.parse(text) as [number, number, Packed[] | undefined]
    if (!Number.isSafeInteger(fence) || !Number.isSafeInteger(number)) return undefined
    return { fence, number, changes: changes?.map(unpacked) }
  } catch {
    return undefined
  }
}

/** Nothing for what is not a list. */
export function listOf(text: string): unknown[] {
  try {
    const value: unknown = JSON.parse(text)
    return Array.isArray(value) ? value : []
  } catch {
    return []
  }
}

/**
 * Pieces in a row of the same text share its names: `[kind, id, messageId, name, ...texts]`. Texts and reasoning have no
 * `name`: its place has their `path`, which servers of older versions ignore.
 */
type Row = (string | null)[]
type Packed =
  | ['p', Row[]]
  | ['r', number, 'all' | 'none' | number[]]
  | ['b', string, number, number, number[], number, Row[]]

function packed(change: Change): Packed {
  switch (change.type) {
    case 'pieces':
      return ['p', rowsOf(change.pieces)]
    case 'rebase':
      return ['r', change.seq, Array.isArray(change.kept) ? spansOf(change.kept) : change.kept]
    case 'base': {
      const { runId, seq, carried, numbers, next, pieces } = change.base
      return ['b', runId, seq, carried, spansOf(numbers), next, rowsOf(pieces)]
    }
  }
}

function unpacked(change: Packed): Change {
  switch (change[0]) {
    case 'p':
      return { type: 'pieces', pieces: piecesOf(change[1]) }
    case 'r': {
      const [, seq, kept] = change
      return { type: 'rebase', seq, kept: Array.isArray(kept) ? numbersOf(kept) : kept }
    }
    case 'b': {
      const [, runId, seq, carried, spans, next, rows] = change
      const base = { runId, seq, carried, numbers: numbersOf(spans), next, pieces: piecesOf(rows) }
      return { type: 'base', base }
    }
  }
}

const fourth = (kind: Piece['kind']) => (kind === 'text' || kind === 'reasoning' ? 'path' : 'name')

function rowsOf(pieces: readonly Piece[]): Row[] {
  const rows: Row[] = []
  let row: Row = []
  let last: Piece | undefined
  for (const piece of pieces) {
    const { kind, id, messageId, text } = piece
    const alike =
      last?.id === id &&
      last.kind === kind &&
      last.messageId === messageId &&
      last[fourth(kind)] === piece[fourth(kind)]
    if (!alike) {
      row = [kind, id, messageId ?? null, piece[fourth(kind)] ?? null]
      rows.push(row)
    }
    row.push(text)
    last = piece
  }
  return rows
}

function piecesOf(rows: readonly Row[]): Piece[] {
  const pieces: Piece[] = []
  for (const [given, id, messageId, name, ...texts] of rows) {
    const kind = given as Piece['kind']
    const names = {
      ...(messageId != null && { messageId }),
      ...(name != null && { [fourth(kind)]: name }),
    }
    for (const text of texts) pieces.push({ kind, id: id!, ...names, text: text! })
  }
  return pieces
}

/** Growing numbers as `[start, count, start, count, ...]`. */
function spansOf(numbers: readonly number[]): number[] {
  const spans: number[] = []
  for (const number of numbers) {
    const end = spans.length - 1
    if (end > 0 && spans[end - 1]! + spans[end]! === number) spans[end]!++
    else spans.push(number, 1)
  }
  return spans
}

function numbersOf(spans: readonly number[]): number[] {
  const numbers: number[] = []
  for (let i = 0; i + 1 < spans.length; i += 2) {
    for (let n = 0; n < spans[i + 1]!; n++) numbers.push(spans[i]! + n)
  }
  return numbers
}
