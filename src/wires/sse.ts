import type { Piece } from '../core/agent.ts'
import type { Known } from '../core/entries.ts'
import { type Cursor, follow } from '../core/follow.ts'
import type { Held } from '../core/tail.ts'
import type { Thread } from '../core/thread.ts'

/** One event of a stream. `data` is JSON text. */
export interface Frame {
  event?: string
  data: string
}

/** A wire's view of a thread: pure functions from what happened to frames. */
export interface Projection {
  /** Frames are made once for all readers of the same dialect. */
  dialect: string
  entry(entry: Known, shown: ReadonlyMap<string, number>): Frame[]
  piece(piece: Piece, runId: string): Frame | undefined
  retracted(ids: string[]): Frame | undefined
  /** The stream is over after this entry. */
  ends(entry: Known): boolean
  /** The stream is over although no entry says so: all of it lies behind the cursor. */
  over(): boolean
}

const batchSize = 16_384

/** Text batches of a thread from a cursor on, each as large as what waits, up to 16 KiB. */
export async function* frames(
  thread: Thread,
  cursor: Cursor,
  view: Projection,
  signal: AbortSignal,
): AsyncGenerator<string, void, undefined> {
  let batch = ''
  for await (const step of follow(thread, cursor, signal)) {
    if (step.type === 'pieces') {
      const { seq, fence, runId } = step
      let offset = step.from
      for (const held of step.pieces) batch += pieceText(held, view, runId, seq, fence, ++offset)
    } else if (step.type === 'entry') {
      batch += entryText(step.entry, step.skip, view, step.shown)
      if (view.ends(step.entry)) {
        if (batch) yield batch
        return
      }
    } else if (step.type === 'retract') {
      const frame = view.retracted(step.ids)
      if (frame) batch += sseText(String(step.seq), frame)
    } else if (view.over()) {
      if (batch) yield batch
      return
    }
    if (batch.length >= batchSize || (step.type === 'idle' && batch)) {
      yield batch
      batch = ''
    }
  }
}

function pieceText(
  held: Held,
  view: Projection,
  runId: string,
  seq: number,
  fence: number,
  offset: number,
): string {
  const known = held.frames?.get(view.dialect)
  if (known !== undefined) return known
  const frame = view.piece(held.piece, runId)
  const text = frame ? sseText(`${seq}.${fence}.${offset}`, frame) : ''
  held.frames ??= new Map()
  held.frames.set(view.dialect, text)
  return text
}

/** Only the last frame of an entry carries its seq; the others say how far into it they are. */
function entryText(
  entry: Known,
  skip: number,
  view: Projection,
  shown: ReadonlyMap<string, number>,
): string {
  const list = view.entry(entry, shown)
  let text = ''
  for (let i = skip; i < list.length; i++) {
    const last = i === list.length - 1
    text += sseText(last ? String(entry.seq) : `${entry.seq - 1}~${i + 1}`, list[i]!)
  }
  return text
}

const sseText = (id: string, { event, data }: Frame) =>
  `id: ${id}\n${event === undefined ? '' : `event: ${event}\n`}data: ${data}\n\n`

export const sseHeaders = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache',
  connection: 'keep-alive',
  'x-accel-buffering': 'no',
}

/** Keeps quiet streams alive with comments: one timer for all of them. */
export class Heartbeats {
  readonly #streams = new Set<{ quietSince: number; beat: () => void }>()
  readonly #every: number
  #timer: NodeJS.Timeout | undefined

  constructor(every = 15_000) {
    this.#every = every
  }

  add(beat: () => void) {
    const stream = { quietSince: Date.now(), beat }
    this.#streams.add(stream)
    this.#timer ??= setInterval(() => this.#tick(), Math.min(1_000, this.#every)).unref()
    return {
      sent: () => {
        stream.quietSince = Date.now()
      },
      stop: () => {
        this.#streams.delete(stream)
        if (this.#streams.size > 0) return
        clearInterval(this.#timer)
        this.#timer = undefined
      },
    }
  }

  #tick(): void {
    const now = Date.now()
    for (const stream of this.#streams) {
      if (now - stream.quietSince < this.#every) continue
      stream.quietSince = now
      stream.beat()
    }
  }
}

/**
 * An event stream that is pulled: a reader that stops reading holds one batch and no more.
 * `gone` fires when the reader leaves; the run goes on.
 */
export function sse(
  batches: (signal: AbortSignal) => AsyncIterable<string>,
  heartbeats: Heartbeats,
  { left, headers }: { left?: () => void; headers?: Record<string, string> } = {},
): Response {
  const gone = new AbortController()
  const iterator = batches(gone.signal)[Symbol.asyncIterator]()
  const encoder = new TextEncoder()
  let beat: ReturnType<Heartbeats['add']> | undefined
  const body = new ReadableStream<Uint8Array>(
    {
      start(out) {
        beat = heartbeats.add(() => {
          if ((out.desiredSize ?? 0) > 0) out.enqueue(encoder.encode(': keep-alive\n\n'))
        })
      },
      async pull(out) {
        try {
          const { done, value } = await iterator.next()
          beat?.sent()
          if (!done) return out.enqueue(encoder.encode(value))
          beat?.stop()
          if (!gone.signal.aborted) out.close()
        } catch (error) {
          beat?.stop()
          out.error(error)
        }
      },
      cancel() {
        beat?.stop()
        gone.abort()
        left?.()
      },
    },
    { highWaterMark: 1 },
  )
  return new Response(body, { headers: { ...sseHeaders, ...headers } })
}
