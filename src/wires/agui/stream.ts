import {
  type Cursor,
  cursorAt,
  cursorText,
  follow,
  namesText,
  sentText,
} from '../../core/follow.ts'
import type { Tail } from '../../core/tail.ts'
import type { Thread } from '../../core/thread.ts'
import {
  type EntryStep,
  entryPlace,
  eventText,
  type Heartbeats,
  openText,
  pieceId,
  slices,
  sse,
  sseText,
} from '../sse.ts'
import { contentOf, type EventText, type LongEvent, openId } from './events.ts'
import { protobuf, wantsProtobuf } from './protobuf.ts'
import type { PiecesStep, Telling } from './telling.ts'

/** Parts of an event's id besides its place, as a letter and a number. */
export const marks = {
  /** So many events of the opening of a run were sent. */
  begun: 'b',
  /** So many events of the opening of a client that joined were sent. */
  joined: 'j',
  /** So many brackets of the next piece were sent: events that begin or end a message or call. */
  brackets: 'p',
  /** A snapshot has told the entries up to this seq. */
  told: 't',
  /** The stream is over. */
  over: 'e',
} as const

/** The first events of a stream. */
export interface Opening {
  events: readonly EventText[]
  mark: typeof marks.begun | typeof marks.joined
  /** How many events of the opening the client has already; they are not among `events`. */
  had?: number
}

/** What a request gets: its encoding is chosen by what it accepts. */
export interface Reply {
  /** These events and no more. They have no ids. */
  once(events: readonly string[]): Response
  /** Events as they come. They have no ids. */
  live(events: (signal: AbortSignal) => AsyncIterable<string[]>): Response
  /** A run as it is, and no more. */
  show(thread: Thread, runId: string, opening: Opening): Response
  /** The thread from a cursor on, until the telling is over. `brackets`: those that the client has. */
  tell(
    thread: Thread,
    from: Cursor,
    telling: Telling,
    opening: Opening,
    brackets?: number,
  ): Response
}

export async function replyTo(request: Request, heartbeats: Heartbeats): Promise<Reply> {
  if (wantsProtobuf(request)) {
    const sink = await protobuf()
    const stream = (batches: (signal: AbortSignal) => AsyncIterable<Told>) =>
      sse((signal) => sink.encode(batches(signal)), heartbeats, sink.options)
    return replyWith(stream)
  }
  return replyWith((batches) => sse((signal) => texts(batches(signal)), heartbeats))
}

/** Events, each with the id that a client continues after, or text that is ready. */
type Told = { events: readonly Numbered<string | LongData>[] } | { text: string } | 'idle'

/** A long event, and its JSON with the data of large parts, which is made when it is sent. */
interface LongData {
  event: LongEvent
  stepsOf: Thread['filledSteps']
}

interface Numbered<Data = string> {
  id?: string
  data: Data
}

function replyWith(
  stream: (batches: (signal: AbortSignal) => AsyncIterable<Told>) => Response,
): Reply {
  const live: Reply['live'] = (events) =>
    stream(async function* (signal) {
      for await (const some of events(signal)) {
        yield { events: some.map((data) => ({ data })) }
        yield 'idle'
      }
    })
  return {
    live,
    once: (events) =>
      live(async function* () {
        yield [...events]
      }),
    show: (thread, runId, opening) => {
      const from = cursorAt(thread.state.seq)
      const events = opened(runId, from, opening, from.seq + marked(runId, marks.over))
      return stream(async function* () {
        yield { events: await filled(thread, events) }
      })
    },
    tell: (thread, from, telling, opening, brackets = 0) =>
      stream((signal) => told(thread, from, telling, opening, brackets, signal)),
  }
}

/** The events with the data of large parts, which is read when they are sent. */
async function filled(thread: Thread, events: readonly Numbered<EventText>[]) {
  const all: Numbered<string | LongData>[] = []
  for (const { data, ...one } of events) {
    const long = typeof data !== 'string'
    all.push({
      ...one,
      data: long ? { event: data, stepsOf: thread.filledSteps } : await thread.filled(data),
    })
  }
  return all
}

const marked = (runId: string, mark: string): string => namesText(runId, '', mark)

/** The events of an opening. The last one brings the client to `last`. */
function opened(
  runId: string,
  from: Cursor,
  { events, mark, had = 0 }: Opening,
  last: string,
): Numbered<EventText>[] {
  return events.map((data, i) => {
    const id = cursorText(from) + marked(runId, mark + (had + i + 1))
    return { id: i === events.length - 1 ? last : id, data }
  })
}

async function* told(
  thread: Thread,
  from: Cursor,
  telling: Telling,
  opening: Opening,
  brackets: number,
  signal: AbortSignal,
): AsyncGenerator<Told, void, undefined> {
  const { runId } = telling
  const names = namesText(runId)
  const had = { brackets }
  /** Where the client is after all that was told. */
  let place = cursorText(from)
  yield { events: await filled(thread, opened(runId, from, opening, place + names)) }
  for await (const step of follow(thread, from, signal)) {
    if (step.type === 'pieces') {
      place = yield* pieces(step, telling, thread.tail, place, had)
      if (step.idle) yield 'idle'
    } else if (step.type === 'idle') yield 'idle'
    else if (step.type === 'retract') {
      place = String(step.seq)
      const events = telling.retract(step.ids)
      const last = events.length - 1
      const all = events.map((data, i) => ({ data, ...(i === last && { id: place + names }) }))
      yield { events: await filled(thread, all) }
    } else {
      yield { events: await filled(thread, entryEvents(step, telling, had)) }
      place = step.entry.seq + openText(step)
      if (telling.over) return
    }
  }
}

function entryEvents(
  step: EntryStep,
  telling: Telling,
  had: { brackets: number },
): Numbered<EventText>[] {
  const { entry, skip, shown } = step
  const { runId } = telling
  const events = telling.entry(entry)
  const ahead = telling.told > entry.seq ? marks.told + telling.told : ''
  const names = ahead === '' ? namesText(runId) : marked(runId, ahead)
  return events.flatMap((data, i) => {
    if (i < skip || isHad(data, had)) return []
    const place = entryPlace(entry, i + 1, events.length)
    if (i < events.length - 1) return [{ id: place + sentText(shown) + names, data }]
    return [
      { id: place + (telling.over ? marked(runId, marks.over) : openText(step) + names), data },
    ]
  })
}

/** Whether this is a bracket that the client has; each is counted once. */
function isHad(data: EventText, had: { brackets: number }): boolean {
  if (had.brackets === 0 || typeof data !== 'string') return false
  if (!/^\{"type":"[A-Z_]+_(START|END)"/.test(data)) return false
  had.brackets--
  return true
}

/** Readers that keep pace take the same pieces at the same time: the first makes the text of all. */
function* pieces(
  step: PiecesStep,
  telling: Telling,
  tail: Tail,
  before: string,
  had: { brackets: number },
): Generator<Told, string, undefined> {
  const { runId } = telling
  const names = namesText(runId)
  const made = madeOf(step, tail, runId)
  if (had.brackets === 0 && telling.takes(made.counts)) {
    yield { text: made.text }
    return made.place
  }
  const { seq, fence, from } = step
  const sent = new Map(step.sent)
  let place = before
  for (const [i, piece] of step.pieces.entries()) {
    const next = pieceId({ seq, fence, offset: from + i + 1 }, piece, sent)
    const all = telling.piece(piece)
    const events = all.flatMap((data, n) => {
      if (isHad(data, had)) return []
      const inside = place + marked(runId, marks.brackets + (n + 1))
      return [{ id: n === all.length - 1 ? next + names : inside, data }]
    })
    yield { events }
    place = next
  }
  return place
}

/** The text of these pieces for a client that has begun what they belong to. */
function madeOf({ seq, fence, from, pieces, ...step }: PiecesStep, tail: Tail, runId: string) {
  const dialect = `agui:${runId}`
  const last = tail.made.get(dialect)
  const count = pieces.length
  const same = last?.seq === seq && last.fence === fence
  if (last?.counts && same && last.from === from && last.count === count)
    return { ...last, counts: last.counts, place: last.place ?? '' }
  const names = namesText(runId)
  const sent = new Map(step.sent)
  const counts = new Map<string, number>()
  let text = ''
  let place = ''
  for (const [i, piece] of pieces.entries()) {
    const id = openId(piece)
    if (piece.kind !== 'output') counts.set(id, (counts.get(id) ?? 0) + piece.text.length)
    place = pieceId({ seq, fence, offset: from + i + 1 }, piece, sent)
    text += sseText(place + names, { data: contentOf(piece.kind, id, piece.text) })
  }
  const made = { seq, fence, from, count, text, counts, place }
  tail.made.set(dialect, made)
  return made
}

const batchSize = 16_384

async function* texts(all: AsyncIterable<Told>): AsyncGenerator<string, void, undefined> {
  let batch = ''
  for await (const one of all) {
    if (one !== 'idle') {
      if ('text' in one) batch += one.text
      else
        for (const { id, data } of one.events) {
          if (typeof data === 'string') {
            batch += id === undefined ? eventText({ data }) : sseText(id, { data })
            continue
          }
          yield* slices(`${batch}${id === undefined ? '' : `id: ${id}\n`}data: `)
          for await (const step of data.stepsOf(data.event)) yield* slices(step)
          batch = '\n\n'
        }
    }
    if (batch !== '' && (one === 'idle' || batch.length >= batchSize)) {
      yield* slices(batch)
      batch = ''
    }
  }
  yield* slices(batch)
}

export type { LongData, Told }
