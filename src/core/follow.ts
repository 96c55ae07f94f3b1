import type { Piece } from './agent.ts'
import type { Known } from './entries.ts'
import { RuntimeError } from './errors.ts'
import { closedBy, shownKey } from './tail.ts'
import type { Thread } from './thread.ts'

/**
 * A place in a thread: `seq`; `seq~n`, when only n frames of the next entry were sent;
 * `seq.fence.offset`, that many pieces into the live tail after `seq`. `!t:id:n` follows for each message or call that
 * is still being written: n characters of it were sent. `@run` follows, and what else names the stream.
 */
export interface Cursor {
  seq: number
  frames: number
  fence: number
  offset: number
  /** The reader was here before, and may have been shown a part of what is still being written. */
  returning?: true
  /** Characters sent of what is being written, by `shownKey`. Undefined if the cursor does not tell. */
  sent?: ReadonlyMap<string, number>
  /** The run that the stream is of, and what else names it. */
  names?: readonly string[]
}

/** Messages and calls that a cursor tells of; a client that left more of them open gets those again from their start. */
const maxSent = 16

const kindLetters = { text: 't', reasoning: 'r', input: 'i', output: 'o' } as const
const kindsByLetter = new Map(
  Object.entries(kindLetters).map(([kind, letter]) => [letter as string, kind as Piece['kind']]),
)

/** `field` is where the text came from. */
export function parseCursor(text: string, field = 'after'): Cursor {
  const wrong = () => new RuntimeError('invalid_cursor', undefined, { field })
  const match =
    /^(\d{1,15})(?:~(\d{1,6})|\.(\d{1,16})\.(\d{1,9}))?((?:![triox]:[\w~-]+:\d{1,9})*)(?:@([\w~@-]+))?$/.exec(
      text,
    )
  if (!match) throw wrong()
  const [, seq, frames = 0, fence = 0, offset = 0, open = '', names] = match
  const place = { seq: Number(seq), frames: Number(frames) }
  const cursor = {
    ...place,
    fence: Number(fence),
    offset: Number(offset),
    returning: true as const,
  }
  if (names === undefined) return cursor
  const sent = new Map<string, number>()
  for (const [letter = '', id = '', count] of open
    .split('!')
    .slice(1)
    .map((one) => one.split(':')))
    sent.set(shownKey(kindsByLetter.get(letter) ?? 'text', nameFrom(id, wrong)), Number(count))
  const told = open.startsWith('!x:') ? {} : { sent }
  return { ...cursor, ...told, names: names.split('@').map((name) => nameFrom(name, wrong)) }
}

/** Part of an id that follows the place: how many characters of each open message the reader was sent. */
export function sentText(sent: ReadonlyMap<string, number>): string {
  if (sent.size > maxSent) return '!x:more:0'
  let text = ''
  for (const [key, count] of sent) {
    const colon = key.indexOf(':')
    const letter = kindLetters[key.slice(0, colon) as Piece['kind']]
    text += `!${letter}:${nameText(key.slice(colon + 1))}:${count}`
  }
  return text
}

export const namesText = (...names: string[]): string =>
  names.map((name) => `@${nameText(name)}`).join('')

/** Names of other characters are encoded: a cursor can stand in a header and in an address. */
const nameText = (name: string): string =>
  /^[\w-]+$/.test(name) ? name : `~${Buffer.from(name).toString('base64url')}`

function nameFrom(text: string, wrong: () => RuntimeError): string {
  if (/^[\w-]+$/.test(text)) return text
  if (!/^~[\w-]*$/.test(text)) throw wrong()
  return Buffer.from(text.slice(1), 'base64url').toString()
}

/** A place in an entry or in the tail as text, without the names of a stream. */
export function cursorText({ seq, fence, offset, sent }: Cursor): string {
  const place = offset > 0 ? `${seq}.${fence}.${offset}` : String(seq)
  return place + (sent ? sentText(sent) : '')
}

export const cursorAt = (seq: number): Cursor => ({ seq, frames: 0, fence: 0, offset: 0 })

export type Step =
  /** `shown`: characters that this reader had as pieces of messages and calls whose entries it does not have. */
  | { type: 'entry'; entry: Known; skip: number; shown: ReadonlyMap<string, number> }
  /**
   * Pieces `from`, `from + 1`, ... of the tail after `seq`. `sent`: characters of those before them, by `shownKey`.
   * `idle`: they are all there is for now.
   */
  | {
      type: 'pieces'
      runId: string
      seq: number
      fence: number
      from: number
      pieces: Piece[]
      sent: ReadonlyMap<string, number>
      idle: boolean
    }
  /** The reader has a part of these messages. They are sent again from their start, or no driver will finish them. */
  | { type: 'retract'; seq: number; ids: string[] }
  /** All there is for now has been given. */
  | { type: 'idle' }

/**
 * The thread from a cursor on: entries, then the live tail, then what comes. Reads at the reader's
 * pace and holds nothing for it; ends when the signal fires, never because the run does.
 */
export async function* follow(
  thread: Thread,
  from: Cursor,
  signal: AbortSignal,
): AsyncGenerator<Step, void, undefined> {
  const { tail } = thread
  const reader = tail.reader()
  const leave = () => reader.wake()
  signal.addEventListener('abort', leave)
  let { seq, frames: skip } = from
  let placed = false
  let again = false
  // What another server writes, entries or tail, may not be here as far as the reader has been.
  const place = () => {
    if (placed || !tail.known || tail.seq !== thread.state.seq) return
    if (tail.seq < from.seq || tail.fence < from.fence) return
    const same = from.fence === tail.fence && from.seq === tail.seq
    if (same && from.offset > tail.pieces.length) return
    const known = from.sent && placeAfter(tail.pieces, from.sent)
    if (same) reader.offset = from.offset
    else if (known !== undefined) reader.offset = known
    else if (from.sent) again = true
    else if (from.offset > 0) again = from.fence === tail.fence
    else again = from.returning === true && tail.carried > 0
    placed = true
    // From here on they are counted by the offset.
    if (from.sent)
      for (const piece of tail.pieces) reader.shown.delete(shownKey(piece.kind, piece.id))
  }
  const more = () =>
    seq < thread.state.seq || (placed && tail.seq === seq && reader.offset < tail.pieces.length)
  for (const [key, count] of from.sent ?? []) reader.shown.set(key, count)
  place()
  try {
    while (!signal.aborted && !thread.erased) {
      if (seq < thread.state.seq) {
        const entries = await thread.entries(seq, 256)
        if (entries.length === 0) return // erased
        for (const entry of entries) {
          const ids = endsLeg(entry) ? openTexts(reader.sent()) : []
          if (ids.length > 0) yield { type: 'retract', seq, ids }
          for (const id of ids) reader.forget(id)
          // The copy of a tail may still have the pieces of a message that is an entry here.
          yield { type: 'entry', entry, skip, shown: reader.sent() }
          seq = entry.seq
          for (const id of closedBy([entry])) reader.forget(id)
          skip = 0
          if (signal.aborted) return
        }
        if (seq >= thread.state.seq && placed) reader.shown.clear()
        continue
      }
      place()
      if (again && tail.seq === seq) {
        again = false
        const ids = [...tail.open()]
        if (ids.length > 0) yield { type: 'retract', seq, ids }
        continue
      }
      let idle = true
      if (more()) {
        const { runId, fence } = tail
        const { offset } = reader
        const pieces = tail.pieces.slice(offset, offset + 512)
        const sent = tail.sentBefore(offset)
        reader.offset += pieces.length
        idle = !more()
        yield { type: 'pieces', runId, seq, fence, from: offset, pieces, sent, idle }
      } else yield { type: 'idle' }
      if (idle && !more()) await reader.wait()
    }
  } finally {
    signal.removeEventListener('abort', leave)
    reader.close()
  }
}

/**
 * Whether a driver ended the current leg with this entry. Commands have no fence: a command that cancels a queued run
 * does not end the leg that is running.
 */
const endsLeg = ({ kind, fence }: Known): boolean => fence > 0 && legEnds.has(kind)

const legEnds: ReadonlySet<string> = new Set([
  ...['run.queued', 'run.waiting', 'run.completed', 'run.failed', 'run.cancelled'],
])

/**
 * Messages that the reader has in part. At the end of a leg they are retracted, because no driver will finish them.
 * The journal does not name the messages of a remote agent: only the lost driver knew them.
 */
function openTexts(sent: ReadonlyMap<string, number>): string[] {
  const ids = new Set<string>()
  for (const key of sent.keys()) {
    const colon = key.indexOf(':')
    if (/^(text|reasoning)$/.test(key.slice(0, colon))) ids.add(key.slice(colon + 1))
  }
  return [...ids]
}

/** How many pieces of a tail are those of which so much was sent; undefined if it was another tail. */
function placeAfter(
  pieces: readonly Piece[],
  sent: ReadonlyMap<string, number>,
): number | undefined {
  const left = new Map(sent)
  let place = 0
  for (const { kind, id, text } of pieces) {
    const rest = left.get(shownKey(kind, id)) ?? 0
    if (rest < text.length || rest === 0) break
    left.set(shownKey(kind, id), rest - text.length)
    place++
  }
  const open = new Set(pieces.map(({ kind, id }) => shownKey(kind, id)))
  for (const [key, rest] of left) if (rest > 0 && open.has(key)) return undefined
  return place
}
