import { shownLine } from '../lib/visible.ts'
import { expire } from './asks.ts'
import type { Bench } from './effects.ts'
import { type Answer, type Ask, type Body, draft } from './entries.ts'
import { defaultAskTimeout } from './policy.ts'
import { decide } from './thread.ts'
import type { ToolQuestion } from './tool.ts'

/** Milliseconds between two looks for an answer that was given elsewhere, where nobody rang. */
const lookEvery = 2_000

/**
 * A question in the middle of a call. The leg goes on meanwhile, so it is this server that hears the
 * answer, through the journal, from whichever wire and server it was given on. What nobody waits for any
 * more is cancelled: here, or by whoever ends the leg.
 */
export async function askLive(
  { title, schema, timeout = defaultAskTimeout }: ToolQuestion,
  { effectId, name, callId }: Body<'effect.intended'>,
  bench: Bench,
  signal: AbortSignal,
): Promise<Pick<Answer, 'state' | 'value' | 'reason'>> {
  const { leg, channel, clock, newId } = bench
  const { thread } = leg
  const askId = newId('ask')
  const ask: Ask = {
    askId,
    kind: 'input',
    title: shownLine(title, 2_000),
    step: leg.legId,
    key: `live:${askId}`,
    tool: name,
    effectId,
    ...(callId !== undefined && { callId }),
    ...(schema !== undefined && { schema }),
    deadline: clock.now() + timeout,
    atTimeout: 'reject',
    live: true,
  }
  try {
    signal.throwIfAborted()
    await channel.commit(draft('ask.raised', { ask }))
  } catch {
    return { state: 'cancelled' } // the leg is over, or the call is
  }
  const answered = () => thread.state.asks.get(askId)?.answer ?? undefined
  const over = new AbortController()
  const look = async () => {
    for (;;) {
      await clock.sleep(Math.min(lookEvery, Math.max(0, ask.deadline - clock.now())), over.signal)
      const late = clock.now() >= ask.deadline
      const looked = late ? expire(thread, clock.now(), newId) : thread.sync()
      await looked.catch(() => {}) // the store is away: the next look finds out
    }
  }
  look().catch(() => {})
  await new Promise<void>((resolve) => {
    const unlisten = thread.listen(() => {
      if (answered()) resolve()
    })
    over.signal.addEventListener('abort', unlisten, { once: true })
    signal.addEventListener('abort', () => resolve(), { once: true, signal: over.signal })
    if (answered() || signal.aborted) resolve()
  }).finally(() => over.abort('over'))
  const answer = answered()
  if (answer) return answer
  if (!leg.signal.aborted) await withdraw(askId, bench).catch(() => {})
  return answered() ?? { state: 'cancelled' }
}

/** The call is over, its question with it. An answer that came first stays. */
async function withdraw(askId: string, { leg }: Bench): Promise<void> {
  const { thread, runId } = leg
  await decide(thread, () => {
    if (thread.state.asks.get(askId)?.answer) return { result: undefined }
    const drafts = [draft('ask.answered', { askId, state: 'cancelled' }, { runId })]
    const expect = [{ fact: `ask:${askId}`, is: 'pending' }]
    const actor = { type: 'system', id: 'call' } as const
    return { drafts, writing: { guard: { expect }, actor }, result: undefined }
  })
}
