import type { Piece } from './agent.ts'
import type { Known } from './entries.ts'
import { RuntimeError } from './errors.ts'
import type { Thread } from './thread.ts'

/**
 * A place in a thread: `seq`; `seq~n`, when only n frames of the next entry were sent;
 * `seq.fence.offset`, that many pieces into the live tail after `seq`.
 */
export interface Cursor {
  seq: number
  frames: number
  fence: number
  offset: number
  /** The reader was here before, and may have been shown a part of what is still being written. */
  returning?: true
}

/** `field` is where the text came from. */
export function parseCursor(text: string, field = 'after'): Cursor {
  const match = /^(\d{1,15})(?:~(\d{1,6})|\.(\d{1,16})\.(\d{1,9}))?$/.exec(text)
  if (!match) throw new RuntimeError('invalid_cursor', undefined, { field })
  const [, seq, frames = 0, fence = 0, offset = 0] = match
  const place = { seq: Number(seq), frames: Number(frames) }
  return { ...place, fence: Number(fence), offset: Number(offset), returning: true }
}

export const cursorAt = (seq: number): Cursor => ({ seq, frames: 0, fence: 0, offset: 0 })

export type Step =
  /** `shown`: characters of a message that this reader already had as pieces. */
  | { type: 'entry'; entry: Known; skip: number; shown: ReadonlyMap<string, number> }
  /** Pieces `from`, `from + 1`, ... of the tail after `seq`. `idle`: they are all there is for now. */
  | {
      type: 'pieces'
      runId: string
      seq: number
      fence: number
      from: number
      pieces: Piece[]
      idle: boolean
    }
  /** These were shown in part on an earlier connection and will be sent again from their start. */
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
    if (same) reader.offset = from.offset
    else if (from.offset > 0) again = from.fence === tail.fence
    else again = from.returning === true && tail.carried > 0
    placed = true
  }
  const more = () =>
    seq < thread.state.seq || (placed && tail.seq === seq && reader.offset < tail.pieces.length)
  place()
  try {
    while (!signal.aborted && !thread.erased) {
      if (seq < thread.state.seq) {
        const entries = await thread.entries(seq, 256)
        if (entries.length === 0) return // erased
        for (const entry of entries) {
          yield { type: 'entry', entry, skip, shown: reader.shown }
          seq = entry.seq
          skip = 0
          if (signal.aborted) return
        }
        if (seq >= thread.state.seq) reader.shown.clear()
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
        reader.offset += pieces.length
        idle = !more()
        yield { type: 'pieces', runId, seq, fence, from: offset, pieces, idle }
      } else yield { type: 'idle' }
      if (idle && !more()) await reader.wait()
    }
  } finally {
    signal.removeEventListener('abort', leave)
    reader.close()
  }
}
