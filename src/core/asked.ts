import type { Bench } from './effects.ts'
import type { Leg } from './leg.ts'
import type { AskRecord, Run } from './state.ts'

/** The asks of a run that still count, in order. */
export function asksOf({ run, thread }: Pick<Leg, 'run' | 'thread'>): AskRecord[] {
  return run.askIds.flatMap((askId) => {
    const record = thread.state.asks.get(askId)
    return record && !isVoid(record, run) ? [record] : []
  })
}

/** The ask of this run with such a key, raised by who works here: another agent's is not ours to go by. */
export const askUnder = (
  { leg, part }: Pick<Bench, 'leg' | 'part'>,
  key: string,
): AskRecord | undefined =>
  asksOf(leg).find(({ ask }) => ask.key === key && ask.path === part?.path)

/** The newest approval ask of a call: it may have been asked again, see `precondition.ts`. */
export const approvalOf = (
  { leg, part }: Pick<Bench, 'leg' | 'part'>,
  callId: string,
): AskRecord | undefined =>
  asksOf(leg).findLast(({ ask }) => ask.key === `call:${callId}` && ask.path === part?.path)

/** Nobody decided it: it ended with the run that failed, and somebody wants that run again. */
const isVoid = ({ answer, seq }: AskRecord, { retriedSeq }: Run): boolean =>
  answer?.state === 'cancelled' && seq < retriedSeq
