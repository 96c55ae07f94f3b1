import { type Cursor, follow } from '../../core/follow.ts'
import type { Tail } from '../../core/tail.ts'
import type { Thread } from '../../core/thread.ts'
import { type Heartbeats, sse, sseText } from '../sse.ts'
import { contentOf, openId } from './events.ts'
import { protobuf, wantsProtobuf } from './protobuf.ts'
import type { PiecesStep, Telling } from './telling.ts'

/** What a request gets: its encoding is chosen by what it accepts. */
export interface Reply {
  /** These events and no more. */
  once(events: readonly string[]): Response
  /** Events as they come. */
  live(events: (signal: AbortSignal) => AsyncIterable<string[]>): Response
  /** The thread from a cursor on, until the telling is over. */
  tell(thread: Thread, from: Cursor, telling: Telling, opening: readonly string[]): Response
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

/** Events under one id, or text that is ready. */
type Told = { id: string; events: readonly string[] } | { id: string; text: string } | 'idle'

function replyWith(
  stream: (batches: (signal: AbortSignal) => AsyncIterable<Told>) => Response,
): Reply {
  const live: Reply['live'] = (events) =>
    stream(async function* (signal) {
      for await (const some of events(signal)) {
        yield { id: '0', events: some }
        yield 'idle'
      }
    })
  return {
    live,
    once: (events) =>
      live(async function* () {
        yield [...events]
      }),
    tell: (thread, from, telling, opening) =>
      stream((signal) => told(thread, from, telling, opening, signal)),
  }
}

async function* told(
  thread: Thread,
  from: Cursor,
  telling: Telling,
  opening: readonly string[],
  signal: AbortSignal,
): AsyncGenerator<Told, void, undefined> {
  yield { id: String(from.seq), events: opening }
  for await (const step of follow(thread, from, signal)) {
    if (step.type === 'pieces') {
      yield* pieces(step, telling, thread.tail)
      if (step.idle) yield 'idle'
    } else if (step.type === 'idle') yield 'idle'
    else if (step.type === 'retract') {
      yield { id: String(step.seq), events: telling.retract(step.ids) }
    } else {
      yield { id: String(step.entry.seq), events: telling.entry(step.entry) }
      if (telling.over) return
    }
  }
}

/** Readers that keep pace take the same pieces at the same time: the first makes the text of all. */
function* pieces(step: PiecesStep, telling: Telling, tail: Tail): Generator<Told, void, undefined> {
  const { seq, fence, from } = step
  const place = `${seq}.${fence}.`
  const count = step.pieces.length
  let made = tail.made.get('agui')
  const same = made?.from === from && made.count === count && made.seq === seq
  if (!(made && same && made.fence === fence)) {
    const counts = new Map<string, number>()
    let text = ''
    for (let i = 0; i < count; i++) {
      const piece = step.pieces[i]!
      const id = openId(piece)
      if (piece.kind !== 'output') counts.set(id, (counts.get(id) ?? 0) + piece.text.length)
      text += sseText(place + (from + i + 1), { data: contentOf(piece.kind, id, piece.text) })
    }
    made = { seq, fence, from, count, text, counts }
    tail.made.set('agui', made)
  }
  if (telling.takes(made.counts!)) {
    yield { id: place + (from + count), text: made.text }
    return
  }
  for (let i = 0; i < count; i++) {
    yield { id: place + (from + i + 1), events: telling.piece(step.pieces[i]!) }
  }
}

const batchSize = 16_384

async function* texts(all: AsyncIterable<Told>): AsyncGenerator<string, void, undefined> {
  let batch = ''
  for await (const one of all) {
    if (one !== 'idle') {
      if ('text' in one) batch += one.text
      else for (const data of one.events) batch += sseText(one.id, { data })
    }
    if (batch !== '' && (one === 'idle' || batch.length >= batchSize)) {
      yield batch
      batch = ''
    }
  }
  if (batch !== '') yield batch
}

export type { Told }
