import { withoutTexts } from '../lib/masked.ts'
import { offshoot } from '../lib/signal.ts'
import { countdown } from './countdown.ts'
import { editOfBegun, withEdit } from './edited.ts'
import type { Bench } from './effects.ts'
import { type Ask, type Body, type Draft, draft } from './entries.ts'
import { failureOf, RuntimeError } from './errors.ts'
import { holdLease, type Leg, mayHandOver, ownerOf } from './leg.ts'
import { askLive } from './live-asks.ts'
import { asText, type CallPart, toolText } from './messages.ts'
import { type Cut, unmoved } from './plan.ts'
import type { EffectRecord } from './state.ts'
import {
  defaultToolTimeout,
  EffectDidNotHappen,
  isHarmless,
  OutcomeUnknown,
  PreconditionChanged,
  type Tool,
  type ToolUse,
} from './tool.ts'

export interface Execution {
  call: CallPart
  tool: Tool
  input: unknown
  /** JSON that stands for the input; see `ParsedInput`. */
  shown: unknown
  raw?: true
  intent: Body<'effect.intended'>
  /** State that the approver saw; the call runs only while it holds. */
  precondition?: string
  /** Asks for the approval again, with a new preview. */
  askAgain?: () => Promise<Ask>
  /** How the earlier attempt stood when this one was planned: a later change of it makes the plan void. */
  seen?: EffectRecord['state']
}

/** Milliseconds a tool has to come back after it was told to stop. */
const stopGrace = 2_000
/** Characters of a result that are kept. */
const resultLimit = 1_000_000

type Outcome = { output: string; thrown?: undefined } | { thrown: unknown } | undefined

/**
 * One tool call through the ledger: intent durable before, outcome after (I4). Returns why the outcome is
 * unknown when it is: the call was cut off, or exceeded its timeout. Returns `PreconditionChanged` when nothing
 * was done and a person must approve the call again. Rejects with `journal_conflict` when an earlier attempt has
 * been settled since the call was planned.
 */
export async function execute(
  { call, tool, input, intent, seen, precondition }: Execution,
  bench: Bench,
): Promise<Cut | PreconditionChanged | undefined> {
  const { leg, channel, clock } = bench
  const { effectId, effect, name, callId } = intent
  const about = { effectId, effect, name, ...(callId !== undefined && { callId }) }
  mayHandOver(leg)
  await channel.commitIf(seen ? unmoved(effectId, seen) : [], draft('effect.intended', intent))
  await holdLease(leg, channel).catch((error: unknown) => {
    channel.write(draft('effect.failed', { ...about, error: notBegun }))
    throw error
  })

  const timeout = tool.timeout ?? defaultToolTimeout
  const over = new AbortController()
  const time = countdown(timeout, clock, over.signal)
  const { signal, leave } = offshoot(leg.signal, time.signal)
  // What comes after the result would be shown as if the call still ran; what is no text, to nobody's use.
  const write = (text: unknown) => {
    if (over.signal.aborted || typeof text !== 'string' || text === '') return
    channel.piece({ kind: 'output', id: call.callId, name, text })
  }
  const ask: ToolUse['ask'] = async (question, gone) => {
    const goOn = time.hold()
    const ends = offshoot(signal, over.signal, ...(gone ? [gone] : []))
    return await askLive(question, intent, bench, ends.signal).finally(() => {
      ends.leave()
      goOn()
    })
  }
  const owner = ownerOf(leg)
  const shown = precondition === undefined ? {} : { precondition }
  const recall: ToolUse['recall'] = (query) => {
    const found = bench.recall(query, signal)
    found.catch(() => {}) // a tool that does not wait for it must not end the process
    return found
  }
  const running: Promise<Outcome> = Promise.resolve()
    .then(() => tool.run(input, { signal, effectId, ...owner, ...shown, write, ask, recall }))
    .then((value): Outcome => ({ output: cut(value) }))
    .catch((thrown: unknown) => ({ thrown })) // also a result that cannot be written down
  const outcome = await Promise.race([running, gaveUp(signal, bench, over.signal)])
  over.abort()
  leave()
  bench.crash('effect.ran')

  if (outcome && 'output' in outcome) {
    const { output } = outcome
    const result = toolText(bench.newId('msg'), call, output)
    const message = withEdit(result, editOfBegun(call, bench))
    channel.write(draft('effect.done', { ...about, output }))
    channel.write(draft('message.added', { message, for: 'both' }))
    bench.messages.push(message)
    return undefined
  }
  const timedOut = time.signal.aborted && !leg.signal.aborted
  const { thrown } = outcome ?? {}
  // An error after its signal fired may only say that it stopped: a request may have been sent before.
  const doubtful = signal.aborted ? !saysNothingHappened(thrown) : thrown instanceof OutcomeUnknown
  // A tool that reports an unknown outcome itself is believed, unless repeating the call does no harm.
  const harmless = thrown instanceof OutcomeUnknown ? tool.idempotent : isHarmless(tool)
  if (!outcome && !(timedOut && isHarmless(tool))) recordLate(running, about, leg)
  const doubt = draft('effect.unknown', {
    ...about,
    ...(time.signal.aborted && { timedOut: true }),
  })
  if (leg.signal.aborted) {
    const known = outcome && !(doubtful && !harmless)
    channel.write(known ? draft('effect.failed', { ...about, error: stopped }) : doubt)
    throw leg.signal.reason
  }
  if (thrown instanceof PreconditionChanged && precondition !== undefined) {
    await channel.commit(draft('effect.failed', { ...about, error: outdated }))
    return thrown
  }
  if (doubtful && !harmless) {
    await channel.commit(doubt)
    const unknown = timedOut ? timeoutCut(timeout, outcome) : (thrown as OutcomeUnknown)
    return { ...unknown, message: withoutTexts(unknown.message, leg.secrets?.() ?? []) }
  }
  const error =
    timedOut && doubtful ? new RuntimeError('tool_timeout', timeoutText(timeout)) : thrown
  const failed = failureDraft(about, error, leg)
  const result = toolText(bench.newId('msg'), call, failed.body.error.message, true)
  const message = withEdit(result, editOfBegun(call, bench))
  channel.write(failed)
  channel.write(draft('message.added', { message, for: 'both' }))
  bench.messages.push(message)
  return undefined
}

const saysNothingHappened = (thrown: unknown): boolean =>
  thrown instanceof EffectDidNotHappen || thrown instanceof PreconditionChanged

type About = Pick<Body<'effect.done'>, 'effectId' | 'effect' | 'name' | 'callId'>

/** Entry that records a failed call; its message is also the result that the model gets. */
function failureDraft(about: About, error: unknown, { secrets }: Leg): Draft<'effect.failed'> {
  const text = `Error executing tool: ${error instanceof Error ? error.message : String(error)}`
  const message = withoutTexts(text, secrets?.() ?? []).slice(0, resultLimit)
  const failure = { ...failureOf(error, 'tool_failed'), message }
  return draft('effect.failed', { ...about, error: failure })
}

export const timeoutText = (timeout: number) =>
  `The call did not finish within ${timeout / 1000} s.`

/** Evidence for `check()` and for the person who is asked. */
function timeoutCut(timeout: number, outcome: Outcome): Cut {
  if (!outcome) {
    const message = `${timeoutText(timeout)} It may still be running.`
    return { message, over: false, running: true }
  }
  const thrown = 'thrown' in outcome ? outcome.thrown : undefined
  const why = thrown instanceof Error ? thrown.message : String(thrown)
  // An error after the signal fired does not say that what the call had requested has ended.
  const over = thrown instanceof OutcomeUnknown && thrown.over
  const end = over ? 'It ended with' : 'The tool stopped with'
  return { message: `${timeoutText(timeout)} ${end}: ${why.slice(0, 1_000)}`, over }
}

/** The only failure after which a call is made again without asking. */
export const notBegun = { code: 'not_begun', message: 'Stopped before it began.' }
const outdated = { ...notBegun, message: 'What the approver saw had changed. Nothing was done.' }
const stopped = { code: 'cancelled', message: 'Stopped while it was running.' }

/** Resolves a while after the signal fired, for tools that do not listen. */
async function gaveUp(signal: AbortSignal, { clock }: Bench, over: AbortSignal) {
  await new Promise<void>((resolve) => {
    if (signal.aborted) resolve()
    signal.addEventListener('abort', () => resolve(), { once: true })
    over.addEventListener('abort', () => resolve(), { once: true })
  })
  if (!over.aborted) await clock.sleep(stopGrace, over).catch(() => {})
  return undefined
}

/**
 * Offers the outcome of a call that did not return in time, once it returns. An error that the tool throws
 * after it was told to stop says nothing, unless the tool says that the effect did not happen.
 */
function recordLate(running: Promise<Outcome>, about: About, leg: Leg): void {
  const { late, awaitLate } = leg
  const returned = running.then((outcome) => {
    if (!outcome) return
    if ('output' in outcome) late(draft('effect.done', { ...about, output: outcome.output }))
    else if (saysNothingHappened(outcome.thrown)) late(failureDraft(about, outcome.thrown, leg))
  })
  awaitLate(returned)
}

function cut(value: unknown): string {
  const text = asText(value)
  if (text.length <= resultLimit) return text
  return `${text.slice(0, resultLimit)}\n(cut: ${text.length - resultLimit} more characters)`
}
