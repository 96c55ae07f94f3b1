import type { AgentEvent } from './agent.ts'
import { askUnder } from './asked.ts'
import type { Bench } from './effects.ts'
import { type Ask, draft } from './entries.ts'
import { type ErrorCode, isRuntimeError, RuntimeError, toRuntimeError } from './errors.ts'
import { notBegun } from './execute.ts'
import { doubtKey, waitForChange } from './late.ts'
import { LegStop } from './leg.ts'
import { asText } from './messages.ts'
import { unmoved } from './plan.ts'
import type { Begun, Looked, RemoteCall } from './remote.ts'
import { unrecordedOf } from './remote-transcript.ts'
import type { EffectRecord } from './state.ts'

export type Fate =
  | 'run'
  | 'rejoin'
  | 'skip'
  | { result: string }
  | { unrecorded: readonly AgentEvent[] }

/** Decides how to continue a leg that an earlier process may have started. */
export async function fateOf(
  record: EffectRecord | undefined,
  call: RemoteCall,
  evidence: (effectId: string) => Promise<unknown>,
  bench: Bench,
): Promise<Fate> {
  if (!record) return 'run'
  const { leg, clock } = bench
  const { state } = leg.thread
  if (record.state === 'done') return { unrecorded: unrecordedOf(record, state) }
  if (record.state === 'failed') return afterFailure(record, call, leg.run.retriedSeq)
  const { effectId, attempt, timeout = call.timeout } = record.intent
  const look = async () => await lookUp(call, { effectId, attempt }, bench)
  const found = await look()
  if (found === 'there') return 'rejoin'
  if (call.idempotent) return 'run'
  const key = doubtKey(record.intent)
  const asked = askUnder(bench, key)
  if (asked) {
    if (!asked.answer) throw new LegStop('parked')
    const { outcome, value } = asked.answer
    if (outcome === 'happened') return { result: asText(value ?? '') }
    return outcome === 'did_not' ? 'run' : 'skip'
  }
  const result = await lookAgain(found, record, timeout, look, bench)
  if (result === 'there') return 'rejoin'
  if (result === 'absent') return 'run'
  /** The fate of a leg whose outcome was recorded meanwhile. */
  const settled = async () => await fateOf(state.effects.get(effectId), call, evidence, bench)
  const isSettled = () => record.state === 'done' || record.state === 'failed'
  if (isSettled()) return await settled()
  // The remote may still work on it, so its outcome cannot be known yet.
  const left = remaining(record, timeout, clock.now())
  const end = clock.monotonic() + left
  while (!isSettled() && clock.monotonic() < end) {
    await waitForChange(leg.thread, effectId, end - clock.monotonic(), clock, leg.signal)
    leg.signal.throwIfAborted()
  }
  if (isSettled()) return await settled()
  const later = await look()
  if (later === 'there') return 'rejoin'
  const kept = await evidence(effectId).catch(() => undefined)
  const known = kept ?? (typeof later === 'object' ? later.evidence : undefined)
  const ask: Ask = {
    askId: bench.newId('ask'),
    kind: 'in_doubt',
    title: `Did this happen? ${call.title}`,
    step: leg.legId,
    key,
    effectId,
    input: call.input,
    ...(known !== undefined && { evidence: known }),
    deadline: clock.now() + 24 * 3_600_000,
    atTimeout: 'reject',
  }
  try {
    await bench.channel.commitIf(unmoved(effectId, record.state), draft('ask.raised', { ask }))
  } catch (error) {
    const { fact } = (isRuntimeError(error, 'journal_conflict') && error.data) || {}
    if (fact !== `effect:${effectId}` || !isSettled()) throw error
    return await settled()
  }
  throw new LegStop('parked')
}

/** Failures of legs that did not start. */
const didNotStart = new Set(['remote_unavailable', notBegun.code])

/**
 * A leg that failed runs again if it did not start, if it is idempotent, or if a person retried the run since.
 * Otherwise throws its failure again: its outcome is not known, and an agent or a workflow step that
 * tries again must not repeat it.
 */
function afterFailure({ seq, error }: EffectRecord, call: RemoteCall, retriedSeq: number): 'run' {
  const { code = 'agent_failed', message } = error ?? {}
  if (call.idempotent || seq < retriedSeq || didNotStart.has(code)) return 'run'
  throw new RuntimeError(code as ErrorCode, message)
}

/** Milliseconds after the intent in which a request of an earlier process may still reach the remote. */
const startLimit = 30_000
/** Milliseconds between two lookups; the second number limits the back-off of lookups that fail. */
const lookEvery = 1_000
const longestPause = 15_000

/** Looks for the work at the remote. A failure of the lookup is reported and returned, except if the leg was stopped. */
async function lookUp(
  call: RemoteCall,
  begun: Begun,
  { leg, report }: Bench,
): Promise<Looked | undefined> {
  try {
    return await call.look?.(begun, leg.signal)
  } catch (error) {
    leg.signal.throwIfAborted()
    const { code } = toRuntimeError(error, 'agent_failed')
    report(error, begun, 'lookup of a remote leg failed')
    // Without the message of the error: the remote wrote it, and may have repeated a secret.
    return { evidence: `The server could not look for it at the remote (${code}).`, failed: true }
  }
}

const isFailed = (found: Looked | undefined) => typeof found === 'object' && found.failed === true

/**
 * Looks again until the remote gives an answer that is final, and returns the last answer. `absent` is final when
 * the lease of the process that may have started the work and the time for its request have passed. A lookup that
 * fails is repeated for as long as the work may be going on there.
 */
async function lookAgain(
  found: Looked | undefined,
  record: EffectRecord,
  timeout: number,
  look: () => Promise<Looked | undefined>,
  { leg, clock }: Bench,
): Promise<Looked | undefined> {
  const now = clock.now()
  const startedAt = clock.monotonic()
  const untilAbsent = Math.min(timeout, Math.max(startLimit, leg.lease.ttl))
  const absentLimit = remaining(record, untilAbsent, now)
  const failedLimit = Math.max(startLimit, remaining(record, timeout, now))
  let last = found
  for (let failures = 0; last === 'absent' || isFailed(last); ) {
    const left = (last === 'absent' ? absentLimit : failedLimit) - (clock.monotonic() - startedAt)
    if (left <= 0) break
    failures = isFailed(last) ? failures + 1 : 0
    const pause = Math.min(lookEvery * 2 ** Math.max(0, failures - 1), longestPause)
    await clock.sleep(Math.min(left, pause), leg.signal)
    last = await look()
  }
  return last
}

/** Milliseconds left of `limit` since the intent; never more than `limit`, also if the clock was set back. */
const remaining = ({ at }: EffectRecord, limit: number, now: number): number =>
  Math.min(limit, Math.max(0, at + limit - now))

/** For a rejoined leg, replaces an error that means "did not start" with `remote_cut`: an earlier process started the leg. */
export const afterStart = (fate: Fate, error: RuntimeError): RuntimeError =>
  fate === 'rejoin' && didNotStart.has(error.code)
    ? new RuntimeError('remote_cut', undefined, { cause: error })
    : error
