import { setImmediate } from 'node:timers/promises'
import type { Piece } from '../core/agent.ts'
import type { Known } from '../core/entries.ts'
import { type Cursor, follow, type Step, sentText } from '../core/follow.ts'
import { closedBy, shownKey, shownKeys, type Tail } from '../core/tail.ts'
import type { Thread } from '../core/thread.ts'
import { slices as slicesOf } from '../lib/json-steps.ts'

/** One event of a stream. `data` is JSON text. */
export interface Frame {
  event?: string
  data: string
}

/** A wire's view of a thread: pure functions from what happened to frames. */
export interface Projection {
  /** Views of the same dialect give the same frames for the same pieces. */
  dialect: string
  /** Names of the stream, which follow the place in every id; see `namesText`. */
  names: string
  entry(entry: Known, shown: ReadonlyMap<string, number>): Frame[]
  /** An entry's frames do not depend on what was shown: they are the same for the whole dialect. */
  alike?: boolean
  /** What is told beside an entry: how things stand now. It has no id, and is not repeated. */
  beside?(entry: Known): Frame | undefined
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
    const text = stepText(step, view, thread.tail)
    const idle = step.type === 'idle' || (step.type === 'pieces' && step.idle)
    // Said of this step: while its text is taken, slowly maybe, the run may go on, and end.
    const over = step.type === 'entry' ? view.ends(step.entry) : idle && view.over()
    if (text.length < batchSize) batch += text
    else {
      if (batch) yield batch
      batch = ''
      yield* slices(text)
    }
    if (batch && (over || idle || batch.length >= batchSize)) {
      yield batch
      batch = ''
    }
    if (over) return
  }
}

function stepText(step: Step, view: Projection, tail: Tail): string {
  switch (step.type) {
    case 'pieces':
      return piecesText(step, view, tail)
    case 'entry':
      return entryText(step, view) + besideText(step.entry, view)
    case 'retract': {
      const frame = view.retracted(step.ids)
      return frame ? sseText(step.seq + view.names, frame) : ''
    }
    case 'idle':
      return ''
  }
}

/** Readers that keep pace take the same pieces at the same time: the first makes the text of all. */
function piecesText(step: Step & { type: 'pieces' }, view: Projection, tail: Tail): string {
  const { runId, seq, fence, from, pieces } = step
  const count = pieces.length
  const made = tail.made.get(view.dialect)
  if (made?.from === from && made.count === count && made.seq === seq && made.fence === fence)
    return made.text
  const sent = new Map(step.sent)
  let text = ''
  for (let i = 0; i < count; i++) {
    const piece = pieces[i]!
    const id = pieceId({ seq, fence, offset: from + i + 1 }, piece, sent) + view.names
    const frame = view.piece(piece, runId)
    if (frame) text += sseText(id, frame)
  }
  tail.made.set(view.dialect, { seq, fence, from, count, text })
  return text
}

/** The id of the frame of a piece, which is counted in `sent`. */
export function pieceId(
  { seq, fence, offset }: { seq: number; fence: number; offset: number },
  { kind, id, text }: Piece,
  sent: Map<string, number>,
): string {
  const key = shownKey(kind, id)
  sent.set(key, (sent.get(key) ?? 0) + text.length)
  return `${seq}.${fence}.${offset}${sentText(sent)}`
}

/** A long text in parts of a batch's size: who stops reading holds a part. */
export const slices = (text: string) => slicesOf(text, batchSize)

/** Long texts of entries by dialect: made once, and held once, however many readers are in it. */
const longTexts = new WeakMap<Known, Map<string, string>>()

export type EntryStep = Step & { type: 'entry' }

function entryText(step: EntryStep, view: Projection): string {
  const { entry, skip } = step
  const open = openText(step)
  const share = view.alike === true && skip === 0 && open === ''
  const known = share ? longTexts.get(entry)?.get(view.dialect) : undefined
  if (known !== undefined) return known
  const list = view.entry(entry, step.shown)
  let text = ''
  for (let i = skip; i < list.length; i++)
    text += sseText(entryPlace(entry, i + 1, list.length) + open + view.names, list[i]!)
  if (share && text.length >= batchSize)
    longTexts.set(entry, (longTexts.get(entry) ?? new Map()).set(view.dialect, text))
  return text
}

/** Only the last frame of an entry carries its seq; the others say how far into it they are. */
export const entryPlace = ({ seq }: Known, n: number, count: number): string =>
  n === count ? String(seq) : `${seq - 1}~${n}`

/** Part of the ids of an entry's frames: the progress of messages that are open beside it. */
export function openText({ entry, shown }: EntryStep): string {
  if (shown.size === 0) return ''
  const open = new Map(shown)
  for (const id of closedBy([entry])) for (const key of shownKeys(id)) open.delete(key)
  return sentText(open)
}

function besideText(entry: Known, view: Projection): string {
  const frame = view.beside?.(entry)
  return frame ? eventText(frame) : ''
}

export const sseText = (id: string, frame: Frame) => `id: ${id}\n${eventText(frame)}`

export const eventText = ({ event, data }: Frame) =>
  `${event === undefined ? '' : `event: ${event}\n`}data: ${data}\n\n`

export const sseHeaders = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache, no-store',
  'x-accel-buffering': 'no',
}

/** Characters of one stream after which other requests run: a fast reader takes them all in one turn of the event loop. */
const pauseLength = 256 * 1024

/** Milliseconds in which what has just happened gets to who reads, before its stream ends. */
const lastFrames = 20

/** Keeps quiet streams alive with comments: one timer for all of them. */
export class Heartbeats {
  readonly #streams = new Set<{ quietSince: number; beat: () => void; end?: () => void }>()
  #ending = false
  readonly #every: number
  #timer: NodeJS.Timeout | undefined

  constructor(every = 15_000) {
    this.#every = every
  }

  /** `end`: of a stream whose reader comes back by itself when it ends too early. */
  add(beat: () => void, end?: () => void) {
    const stream = { quietSince: Date.now(), beat, ...(end && { end }) }
    this.#streams.add(stream)
    if (this.#ending && end) setTimeout(end, lastFrames)
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

  /** Sends readers elsewhere, those who would find the way. */
  endAll(): void {
    this.#ending = true
    for (const { end } of this.#streams) if (end) setTimeout(end, lastFrames)
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

export interface StreamOptions {
  left?: () => void
  /** The reader comes back by itself with the id of the last frame. */
  resumes?: boolean
  headers?: Record<string, string>
  /** What keeps a quiet stream alive, if not a comment; empty where the encoding has nothing for it. */
  beat?: string
  /** The text that a frame ends with, if not an empty line. Nothing is inserted within a frame. */
  frameEnd?: string
}

/**
 * An event stream that is pulled: a reader that stops reading holds one batch and no more.
 * `gone` fires when the reader leaves; the run goes on.
 */
export function sse(
  batches: (signal: AbortSignal) => AsyncIterable<string | Uint8Array>,
  heartbeats: Heartbeats,
  {
    left,
    resumes,
    headers,
    beat: sign = ': keep-alive\n\n',
    frameEnd = '\n\n',
  }: StreamOptions = {},
): Response {
  // Before anything is registered for the stream: a header that cannot be sent must leak nothing.
  const sent = new Headers({ ...sseHeaders, ...headers })
  const gone = new AbortController()
  const iterator = batches(gone.signal)[Symbol.asyncIterator]()
  let beat: ReturnType<Heartbeats['add']> | undefined
  let ending = false
  let unpaused = 0
  /** The last batch ended within a frame: a comment there would become part of its data. */
  let inside = false
  const end = () => {
    ending = true
    gone.abort()
  }
  const body = new ReadableStream<Uint8Array>(
    {
      start(out) {
        beat = heartbeats.add(
          () => {
            if (sign !== '' && !inside && (out.desiredSize ?? 0) > 0) out.enqueue(Buffer.from(sign))
          },
          resumes ? end : undefined,
        )
      },
      async pull(out) {
        try {
          const { done, value } = await iterator.next()
          beat?.sent()
          inside = typeof value === 'string' && !value.endsWith(frameEnd)
          unpaused += value?.length ?? 0
          if (unpaused >= pauseLength) {
            unpaused = 0
            await setImmediate()
          }
          // For a single delta this costs half of what a TextEncoder does.
          if (!done) return out.enqueue(typeof value === 'string' ? Buffer.from(value) : value)
          beat?.stop()
          if (ending) out.enqueue(Buffer.from(comeBack()))
          if (ending || !gone.signal.aborted) out.close()
        } catch (error) {
          beat?.stop()
          out.error(error)
        }
      },
      cancel() {
        ending = false
        beat?.stop()
        gone.abort()
        left?.()
      },
    },
    { highWaterMark: 1 },
  )
  return new Response(body, { headers: sent })
}

/** Milliseconds after which an EventSource comes back: soon, and not all at the same time. */
const comeBack = () => `retry: ${100 + Math.floor(Math.random() * 900)}\n\n`
