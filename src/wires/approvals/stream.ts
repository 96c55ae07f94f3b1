import type { InboxStep } from '../../core/follow-inbox.ts'
import type { Caller, Runtime } from '../../core/runtime.ts'
import type { AskRow } from '../../core/store.ts'
import { type Frame, sseText } from '../sse.ts'
import { approvalJson } from './approval.ts'

/** The inbox as an event stream. Whoever comes back with the last id is told what came after it. */
export async function* inboxFrames(
  runtime: Runtime,
  caller: Caller,
  after: string | undefined,
  signal: AbortSignal,
): AsyncGenerator<string, void, undefined> {
  if (after !== undefined) yield ': welcome back\n\n' // some clients wait for a first byte
  for await (const step of runtime.inbox.follow(caller, after || undefined, signal))
    yield textOf(framesOf(step, caller.user), step.place)
}

function framesOf(step: InboxStep, user: string): Frame[] {
  if (step.type === 'changed')
    return step.rows.map((row) => frame(eventOf(row), approvalJson(row, user)))
  const approvals = step.rows.map((row) => approvalJson(row, user))
  return [frame('snapshot', { approvals, first: step.first, last: step.place !== undefined })]
}

const frame = (event: string, data: object): Frame => ({ event, data: JSON.stringify(data) })

function eventOf({ state }: AskRow): string {
  if (state === 'pending') return 'raised'
  return state === 'timeout' ? 'expired' : 'settled'
}

/** Only the last frame brings the reader to the new place: who leaves before it is told again. */
const textOf = (frames: readonly Frame[], place: string | undefined): string =>
  frames
    .map((one, n) =>
      place !== undefined && n === frames.length - 1
        ? sseText(place, one)
        : `event: ${one.event}\ndata: ${one.data}\n\n`,
    )
    .join('')
