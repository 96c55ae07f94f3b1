import { RuntimeError } from '../core/errors.ts'
import { type Cursor, parseCursor } from '../core/follow.ts'
import type { Caller, Runtime } from '../core/runtime.ts'
import type { Run, ThreadState } from '../core/state.ts'
import type { Thread } from '../core/thread.ts'

export interface Resumed {
  thread: Thread
  run: Run
  cursor: Cursor
}

const field = 'header.last-event-id'

/**
 * The stream that a POST with `Last-Event-ID` continues: clients repeat their POST with this header after a
 * disconnect, and must not start a second run. Returns undefined without the header. Throws `invalid_cursor` if the id
 * is of no run of this caller. `threadId` is the thread that the request names, if it names one; otherwise the id does.
 */
export async function resumedBy(
  request: Request,
  runtime: Runtime,
  caller: Caller,
  threadId: string | undefined,
): Promise<Resumed | undefined> {
  const last = request.headers.get('last-event-id')
  if (!last) return undefined
  const cursor = parseCursor(last, field)
  const named = cursor.names?.[1] || threadId
  const thread = named === undefined ? undefined : await runtime.find(caller, named)
  if (!thread || (threadId !== undefined && named !== threadId)) throw unknownPlace()
  if (cursor.seq > thread.state.seq) await thread.sync()
  const run = await runAt(thread, cursor)
  if (!run || cursor.seq > thread.state.seq) throw unknownPlace()
  return { thread, run, cursor }
}

export const unknownPlace = () =>
  new RuntimeError('invalid_cursor', 'The id is of no run of yours. Send the request without it.', {
    field,
  })

/** The run that a place belongs to. Ids of older servers do not name it: it is the run of the entry at that place. */
async function runAt(thread: Thread, cursor: Cursor): Promise<Run | undefined> {
  const { state } = thread
  const runId = cursor.names?.[0] ?? (await runOfEntry(thread, cursor)) ?? activeRun(state)
  const run = state.runs.get(runId ?? '')
  return run && cursor.seq >= run.firstSeq - 1 ? run : undefined
}

async function runOfEntry(thread: Thread, { seq, frames }: Cursor): Promise<string | undefined> {
  const before = frames > 0 ? seq : seq - 1
  if (before < 0) return undefined
  const [entry] = await thread.entries(before, 1)
  return entry?.runId
}

const activeRun = ({ active, head }: ThreadState) => active ?? head
