import { asksOf } from './asked.ts'
import type { Bench } from './effects.ts'
import { type Ask, draft } from './entries.ts'
import { timeoutText } from './execute.ts'
import { ownerOf } from './leg.ts'
import { limited } from './limited.ts'
import { asText, type CallPart } from './messages.ts'
import { type Plan, placeOf, say, type Toolbox, unmoved } from './plan.ts'
import { showCall } from './showing.ts'
import type { EffectRecord } from './state.ts'
import { defaultToolTimeout } from './tool.ts'

type Look = Plan & { do: 'look' }

/** Milliseconds a person has to say whether it happened. */
const doubtTimeout = 24 * 3_600_000
const interrupted = 'The call was interrupted.'
/** Milliseconds a tool has to find out. */
const checkLimit = 30_000
/** Least milliseconds after a timeout during which a request that the call has sent may still have its effect. */
const settleTime = 30_000

/**
 * Finds out whether a call in doubt happened: from the tool's `check()`, from evidence in the spool, or from
 * a person, who may also have the tool check again. A call that did not happen is planned again.
 */
export async function lookAt(
  { execution, record, again, cut }: Look,
  call: CallPart,
  box: Toolbox,
  bench: Bench,
): Promise<Plan> {
  const { leg, clock } = bench
  const { tool, input, intent } = execution
  const { effectId, effect, name } = intent
  const about = { effectId, effect, name, callId: call.callId }
  const expect = unmoved(effectId, execution.seen ?? record.state)
  const key = `doubt:${effectId}:${record.intent.attempt}`
  const asked = asksOf(leg).filter(({ ask }) => ask.key === key || ask.key.startsWith(`${key}:`))
  const last = asked.at(-1) // each look that found nothing has raised another
  const happened = (output: string): Plan => ({
    ...say(output, false, draft('effect.done', { ...about, output })),
    expect,
  })
  const failed = (text: string, code: 'tool_failed' | 'tool_timeout'): Plan => ({
    ...say(text, true, draft('effect.failed', { ...about, error: { code, message: text } })),
    expect,
  })
  if (last) {
    const { answer } = last
    if (!answer) return { do: 'wait' }
    if (answer.outcome === 'did_not') return again()
    if (answer.outcome === 'happened') return happened(asText(answer.value ?? 'It was done.'))
    if (answer.outcome !== 'check')
      return failed(
        `${interrupted} Whether it happened is not known; it was skipped.`,
        'tool_failed',
      )
  }
  // An earlier process, or what it called, may still be at it until then.
  const limit = record.intent.timeout ?? defaultToolTimeout
  const left = lastSign(record, bench) + limit - clock.now()
  // The clock may have been set back since: no wait is longer than the timeout itself.
  if (left > 0 && !cut?.over) await clock.sleep(Math.min(left, limit), leg.signal)
  const check = () =>
    limited(checkLimit, bench, (signal) => tool.check?.(input, effectId, signal, ownerOf(leg)))
  const { timedOutAt } = record
  const settle = Math.max(limit, settleTime)
  const unsettled = timedOutAt === undefined || cut?.over ? 0 : timedOutAt + settle - clock.now()
  let found = await check()
  // A request of the call may still be under way: believe a "no" only when the settle time has passed.
  if (found?.happened === false && unsettled > 0 && !cut?.running) {
    await clock.sleep(Math.min(unsettled, settle), leg.signal)
    found = await check()
  }
  if (found?.happened) return happened(found.output)
  if (found && timedOutAt === undefined)
    return leg.settling ? failed(`${interrupted} It did not happen.`, 'tool_failed') : again()
  // It would take too long once more: the model decides what to do instead.
  if (found && !cut?.running)
    return failed(`${cut?.message ?? timeoutText(limit)} It did not happen.`, 'tool_timeout')
  const kept = await box.evidence(effectId).catch(() => undefined)
  const evidence = kept ?? (cut && { error: cut.message }) ?? last?.ask.evidence
  const next = asked.length === 0 ? key : `${key}:${asked.length + 1}`
  return { do: 'raise', ask: () => doubtAsk(next, evidence, execution, record, box, bench), expect }
}

/** What was about to happen, when it began, and what is known of it. */
async function doubtAsk(
  key: string,
  evidence: unknown,
  { call, tool, input, shown, raw, intent }: Look['execution'],
  { at, intent: begun }: EffectRecord,
  { agent }: Toolbox,
  bench: Bench,
): Promise<Ask> {
  const { leg, clock } = bench
  const { messageId } = placeOf(call, bench)
  const { card } = await showCall({ tool, input, shown, agent, messageId, began: at }, bench)
  // Who may say whether it may happen may say whether it did.
  const { audience } = leg.thread.state.asks.get(begun.askId ?? '')?.ask ?? {}
  return {
    askId: bench.newId('ask'),
    kind: 'in_doubt',
    title: card.title,
    step: leg.legId,
    key,
    tool: intent.name,
    callId: call.callId,
    effectId: intent.effectId,
    input: shown,
    ...(raw && { raw }),
    digest: intent.digest,
    card,
    ...(tool.check && { checks: true }),
    ...(evidence !== undefined && { evidence }),
    deadline: clock.now() + doubtTimeout,
    atTimeout: 'reject',
    ...(audience && { audience }),
  }
}

/** When it began, or went on with an answer to what it had asked. */
function lastSign({ at, intent }: EffectRecord, { leg }: Bench): number {
  const { asks } = leg.thread.state
  const answered = leg.run.askIds.map((id) => {
    const { ask, answeredAt } = asks.get(id) ?? {}
    return ask?.live && ask.effectId === intent.effectId ? (answeredAt ?? 0) : 0
  })
  return Math.max(at, ...answered)
}
