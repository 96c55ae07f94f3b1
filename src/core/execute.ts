import { offshoot } from '../lib/signal.ts'
import { countdown } from './countdown.ts'
import type { Bench } from './effects.ts'
import { type Body, draft } from './entries.ts'
import { failureOf, RuntimeError } from './errors.ts'
import { mayHandOver } from './leg.ts'
import { askLive } from './live-asks.ts'
import { asText, type CallPart, toolText } from './messages.ts'
import { defaultToolTimeout, OutcomeUnknown, type Tool, type ToolUse } from './tool.ts'

export interface Execution {
  call: CallPart
  tool: Tool
  input: unknown
  intent: Body<'effect.intended'>
}

/** Milliseconds a tool has to come back after it was told to stop. */
const stopGrace = 2_000
/** Characters of a result that are kept. */
const resultLimit = 1_000_000

type Outcome = { output: string } | { thrown: unknown } | undefined

/**
 * One tool call through the ledger: intent durable before, outcome after (I4). Gives what cut it off
 * when it may have happened and a person must say whether it did.
 */
export async function execute(
  { call, tool, input, intent }: Execution,
  bench: Bench,
): Promise<OutcomeUnknown | undefined> {
  const { leg, channel, clock } = bench
  const { effectId, effect, name, callId } = intent
  const about = { effectId, effect, name, ...(callId !== undefined && { callId }) }
  mayHandOver(leg)
  await channel.commit(draft('effect.intended', intent))
  const held = channel.away(() => leg.lease.hold()).then(() => leg.signal.throwIfAborted())
  await held.catch((error: unknown) => {
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
  const { tenant } = leg.thread.state
  const recall: ToolUse['recall'] = (query) => {
    const found = bench.recall(query, signal)
    found.catch(() => {}) // a tool that does not wait for it must not end the process
    return found
  }
  const running: Promise<Outcome> = Promise.resolve()
    .then(() => tool.run(input, { signal, effectId, tenant, write, ask, recall }))
    .then((value): Outcome => ({ output: cut(value) }))
    .catch((thrown: unknown) => ({ thrown })) // also a result that cannot be written down
  const outcome = await Promise.race([running, gaveUp(signal, bench, over.signal)])
  over.abort()
  leave()
  bench.crash('effect.ran')

  if (outcome && 'output' in outcome) {
    const { output } = outcome
    const message = toolText(bench.newId('msg'), call, output)
    channel.write(draft('effect.done', { ...about, output }))
    channel.write(draft('message.added', { message, for: 'both' }))
    bench.messages.push(message)
    return undefined
  }
  if (leg.signal.aborted) {
    // It was told to stop and did, or it may still be at it: then its outcome is taken later.
    if (outcome) channel.write(draft('effect.failed', { ...about, error: stopped }))
    else {
      channel.write(draft('effect.unknown', about))
      settleLate(running, about, bench)
    }
    throw leg.signal.reason
  }
  const thrown = outcome?.thrown
  if (thrown instanceof OutcomeUnknown && !(tool.idempotent || time.signal.aborted)) {
    await channel.commit(draft('effect.unknown', about))
    return thrown
  }
  const error = time.signal.aborted
    ? new RuntimeError('tool_timeout', `It took longer than ${timeout / 1000} s and was stopped.`)
    : thrown
  const text = `Error executing tool: ${error instanceof Error ? error.message : String(error)}`
  const message = toolText(bench.newId('msg'), call, text.slice(0, resultLimit), true)
  const failure = failureOf(error, 'tool_failed')
  channel.write(draft('effect.failed', { ...about, error: { ...failure, message: text } }))
  channel.write(draft('message.added', { message, for: 'both' }))
  bench.messages.push(message)
  return undefined
}

/** The only failure after which a call is made again without asking. */
export const notBegun = { code: 'not_begun', message: 'Stopped before it began.' }
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

/** The outcome of an effect that was begun is taken even after its run has ended. */
function settleLate(
  running: Promise<Outcome>,
  about: Pick<Body<'effect.done'>, 'effectId' | 'effect' | 'name' | 'callId'>,
  { leg }: Bench,
): void {
  const { thread, runId, legId } = leg
  const { effectId } = about
  const inDoubt = new Promise<void>((resolve) => {
    if (thread.state.effects.get(effectId)?.state === 'unknown') return resolve()
    const unlisten = thread.listen((entry) => {
      if (entry.kind !== 'effect.unknown' || entry.body.effectId !== effectId) return
      unlisten()
      resolve()
    })
  })
  void running.then(async (outcome) => {
    if (!outcome) return
    await inDoubt // it may come back before that is written
    const settled =
      'output' in outcome
        ? draft('effect.done', { ...about, output: outcome.output }, { runId, legId })
        : draft('effect.failed', { ...about, error: stopped }, { runId, legId })
    const expect = [{ fact: `effect:${effectId}`, is: 'unknown' }]
    const actor = { type: 'system', id: 'late' } as const
    await thread.commit([settled], { guard: { expect }, actor }).catch(() => {})
  })
}

function cut(value: unknown): string {
  const text = asText(value)
  if (text.length <= resultLimit) return text
  return `${text.slice(0, resultLimit)}\n(cut: ${text.length - resultLimit} more characters)`
}
