import { asksOf } from './asked.ts'
import type { Bench } from './effects.ts'
import { type Ask, draft } from './entries.ts'
import { limited } from './limited.ts'
import { asText, type CallPart } from './messages.ts'
import { changed, type Plan, placeOf, say, type Toolbox } from './plan.ts'
import { showCall } from './showing.ts'
import type { EffectRecord } from './state.ts'
import { defaultToolTimeout } from './tool.ts'

type Look = Plan & { do: 'look' }

/** Milliseconds a person has to say whether it happened. */
const doubtTimeout = 24 * 3_600_000
/** Milliseconds a tool has to find out. */
const checkLimit = 30_000

/**
 * After a crash: did it happen? Found out by the tool, by what was kept, or by a person, who may also let
 * the tool look again.
 */
export async function lookAt(
  { execution, record, stale, cut }: Look,
  call: CallPart,
  box: Toolbox,
  bench: Bench,
): Promise<Plan> {
  const { leg, clock } = bench
  const { tool, input, intent } = execution
  const { effectId, effect, name } = intent
  const about = { effectId, effect, name, callId: call.callId }
  const key = `doubt:${effectId}:${record.intent.attempt}`
  const asked = asksOf(leg).filter(({ ask }) => ask.key === key || ask.key.startsWith(`${key}:`))
  const last = asked.at(-1) // each look that found nothing has raised another
  const happened = (output: string): Plan =>
    say(output, false, draft('effect.done', { ...about, output }))
  const didNot = (): Plan => (stale ? say(changed) : { do: 'run', execution })
  if (last) {
    const { answer } = last
    if (!answer) return { do: 'wait' }
    if (answer.outcome === 'did_not') return didNot()
    if (answer.outcome === 'happened') return happened(asText(answer.value ?? 'It was done.'))
    if (answer.outcome !== 'check') {
      const text =
        'The server stopped during this call. Whether it happened is not known; it was skipped.'
      const error = { code: 'tool_failed', message: text }
      return say(text, true, draft('effect.failed', { ...about, error }))
    }
  }
  // An earlier process, or what it called, may still be at it until then.
  const until = lastSign(record, bench) + (record.intent.timeout ?? defaultToolTimeout)
  if (clock.now() < until && !cut?.over) await clock.sleep(until - clock.now(), leg.signal)
  const found = await limited(checkLimit, bench, (signal) => tool.check?.(input, effectId, signal))
  if (found?.happened) return happened(found.output)
  if (found) return didNot()
  const kept = await box.evidence(effectId).catch(() => undefined)
  const evidence = kept ?? (cut && { error: cut.message }) ?? last?.ask.evidence
  const next = asked.length === 0 ? key : `${key}:${asked.length + 1}`
  return { do: 'raise', ask: () => doubtAsk(next, evidence, execution, record, box, bench) }
}

/** What was about to happen, when it began, and what is known of it. */
async function doubtAsk(
  key: string,
  evidence: unknown,
  { call, tool, input, intent }: Look['execution'],
  { at, intent: begun }: EffectRecord,
  { agent }: Toolbox,
  bench: Bench,
): Promise<Ask> {
  const { leg, clock } = bench
  const { messageId } = placeOf(call, bench)
  const card = await showCall({ tool, input, agent, messageId, began: at }, bench)
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
    input,
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
