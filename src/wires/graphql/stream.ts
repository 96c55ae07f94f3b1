import type { Piece } from '../../core/agent.ts'
import { type Cursor, follow } from '../../core/follow.ts'
import type { Thread } from '../../core/thread.ts'
import type { Clock } from '../../lib/clock.ts'
import type { RuntimeEvent, ToldEvent } from './events.ts'
import type { Telling } from './telling.ts'

/** Characters that go out together at most, so that a reader who stops holds little. */
const batchSize = 16_384

/** Milliseconds between two parts at least: to the client every part means to draw all of it anew. */
const pace = 5

/** What a run says from a cursor on, in batches as large as what waits for the reader. */
export async function* told(
  thread: Thread,
  from: Cursor,
  telling: Telling,
  clock: Clock,
  signal: AbortSignal,
): AsyncGenerator<RuntimeEvent[], void, undefined> {
  let batch: RuntimeEvent[] = []
  let size = 0
  for await (const step of follow(thread, from, signal)) {
    if (step.type === 'pieces' && step.runId === telling.runId) {
      for (const piece of joined(step.pieces)) {
        batch.push(...telling.piece(piece, clock.now()))
        size += piece.text.length
      }
    } else if (step.type === 'entry')
      for (const event of telling.entry(step.entry))
        batch.push(await filled(thread, event, telling.over))
    const idle = step.type === 'idle' || (step.type === 'pieces' && step.idle)
    if (batch.length > 0 && (telling.over || idle || size >= batchSize)) {
      yield batch
      batch = []
      size = 0
      if (idle && !telling.over) await clock.sleep(pace, signal).catch(() => {})
    }
    if (telling.over) return
  }
  if (!signal.aborted) yield [...batch, ...telling.gone()]
}

/**
 * The event with the data of large images. The state at the end may contain the whole thread: its text is made while it
 * is sent. A response has one such text, and any number of others.
 */
async function filled(thread: Thread, event: ToldEvent, isEnd: boolean): Promise<RuntimeEvent> {
  if (event.type !== 'AgentStateMessage') return event
  const { state: given } = event
  if (typeof given === 'string') return { ...event, state: await thread.filled(given) }
  if (isEnd) return { ...event, state: { steps: () => thread.filledSteps(given) } }
  let state = ''
  for await (const step of thread.filledSteps(given)) state += step
  return { ...event, state }
}

/** Neighbours of the same text that wait together are one. */
function joined(pieces: readonly Piece[]): Piece[] {
  const list: Piece[] = []
  for (const piece of pieces) {
    const last = list.at(-1)
    if (last?.id === piece.id && last.kind === piece.kind) last.text += piece.text
    else list.push({ ...piece })
  }
  return list
}
