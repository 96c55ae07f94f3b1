import type { AgentContext, TaskEnd } from '../../core/agent.ts'
import type { Usage } from '../../core/entries.ts'
import { AgentError, RuntimeError, toRuntimeError } from '../../core/errors.ts'
import { LegStop } from '../../core/leg.ts'
import { textOf } from '../../core/messages.ts'
import { defaultRetry, pauseAfter } from '../../core/retry.ts'
import type { AgentMoved } from '../../core/workflow-events.ts'
import { fenced, readFenced } from '../../lib/fenced.ts'
import { lossIn } from '../../lib/json.ts'
import { nameOf, type Step } from './options.ts'
import type { SharedState } from './state.ts'

interface Worked {
  output: unknown
  usage: Usage
}

/** Milliseconds after which a step that has failed is left, although the outcome of one of its calls is still unknown. */
const settleLimit = 60 * 60_000

/**
 * Settles calls of a step that has failed: their outcome may be unknown, because the step's time was over in the middle
 * of them. Rejects with the end of the leg when a person must say what happened. Resolves after `settleLimit` at the latest.
 */
export async function settleCalls(
  step: Step,
  state: SharedState,
  failure: Error,
  ctx: AgentContext,
): Promise<void> {
  const { agent, outputKey: path } = step
  const input = inputTo(step, state)
  const settled = inTime({ ...step, timeout: settleLimit }, ctx.clock.now(), ctx, (signal) =>
    ctx.delegate({ path, agent, input, failure, signal }),
  )
  await settled.catch((thrown: unknown) => {
    if (thrown instanceof LegStop || ctx.signal.aborted) throw thrown
  })
}

/** Does a step, or goes on with it; tries it again by its rule. */
export async function work(
  step: Step,
  state: SharedState,
  ctx: AgentContext,
  tell: (moved: AgentMoved) => Promise<void>,
): Promise<Worked> {
  const { outputKey, retry } = step
  const agent = nameOf(step)
  const { clock } = ctx
  const known = state.agents[outputKey]
  const fresh = !known || known.status === 'failed'
  const number = known?.step ?? ++state.step
  const record = fresh
    ? { agent, step: number, status: 'running' as const, failures: 0 }
    : { ...known, status: 'running' as const }
  // After a crash its time goes on; after a person's answer it begins anew.
  const since = fresh || known.status === 'waiting' ? clock.now() : known.started_at
  const now = { ...record, started_at: since, duration_ms: 0 }
  state.agents[outputKey] = now
  const about = { agent, path: outputKey, step: number }
  const task = taskOf(step, state)
  if (fresh) await tell({ ...about, status: 'running', task })
  const rule = { ...defaultRetry, attempts: 1, ...(retry && { attempts: 3 }), ...retry }
  const input = inputTo(step, state)
  for (;;) {
    try {
      const end = await inTime(step, now.started_at, ctx, (signal) =>
        ctx.delegate({ path: outputKey, agent: step.agent, input, signal }),
      )
      const output = asJson(step.output ? await step.output(end) : outputOf(end))
      return { output, usage: end.usage }
    } catch (thrown) {
      if (thrown instanceof LegStop || ctx.signal.aborted) throw thrown
      if (thrown instanceof AgentError) throw thrown // only the user can change it
      const { code, message, retryable } = toRuntimeError(thrown, 'agent_failed')
      const again = retryable || code === 'agent_failed' || code === 'agent_timeout'
      now.failures++
      const pause = pauseAfter({ code, retryable: again }, now.failures, rule, Math.random())
      if (pause === undefined) throw thrown
      now.started_at = clock.now() + pause
      await tell({ ...about, status: 'running', task, error: message, code, again: true })
      ctx.report(thrown, { ...about, failures: now.failures }, 'a step failed, and is tried again')
      await clock.sleep(pause, ctx.signal)
    }
  }
}

/** As the steps after it find it, also after a restart. What cannot be kept is the step's own failure. */
function asJson(output: unknown): unknown {
  const loss = lossIn(output, 'output')
  if (loss !== undefined)
    throw new RuntimeError('agent_failed', `What it gives cannot be written as JSON: ${loss}.`)
  try {
    return JSON.parse(JSON.stringify(output) ?? 'null')
  } catch (cause) {
    throw new RuntimeError('agent_failed', 'What it gives cannot be written as JSON.', { cause })
  }
}

/** Milliseconds that an agent has to stop when its time is over. */
const grace = 2_000

async function inTime<T>(
  step: Step,
  since: number,
  { clock }: AgentContext,
  run: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const late = new AbortController()
  const over = new AbortController()
  const { timeout } = step
  if (timeout === undefined) return await run(late.signal)
  const left = Math.min(timeout, since + timeout - clock.now()) // the clock may have been set back
  const told = `${nameOf(step)} was not done after ${timeout / 1_000} s.`
  const error = new RuntimeError('agent_timeout', told)
  if (left <= 0) throw error // its time went by while no server was up: it is not begun again
  const running = run(late.signal).finally(() => over.abort('over'))
  const alarm = async (): Promise<never> => {
    await clock.sleep(left, over.signal)
    late.abort(error)
    await clock.sleep(grace, over.signal)
    throw error // it does not listen; what it still says is not heard
  }
  const ringing = alarm()
  ringing.catch(() => {}) // also when it was in time
  return await Promise.race([running, ringing.catch((thrown) => settledOr(running, over, thrown))])
}

/** The alarm was called off: what came of the work counts. */
const settledOr = <T>(running: Promise<T>, over: AbortController, error: unknown): Promise<T> =>
  over.signal.aborted ? running : Promise.reject(error)

const numberOf = ({ outputKey }: Step, { agents }: SharedState): number => agents[outputKey]!.step

const taskOf = (step: Step, state: SharedState): string =>
  step.task ?? `Do step ${numberOf(step, state)} of ${state.workflow}.`

const inputTo = (step: Step, state: SharedState): string =>
  `${taskOf(step, state)}\n\n${fenced(inputOf(step, state, numberOf(step, state)))}`

/** What a step is given of the shared state. */
function inputOf({ inputKeys }: Step, state: SharedState, step: number): object {
  const keys = inputKeys ?? ['user_message']
  const given = Object.fromEntries(keys.map((key) => [key, state[key] ?? null]))
  return { ...given, step, session_id: state.session_id }
}

/** What an agent gives: what it says is its output, or what it said last, as JSON where it is; or its state. */
function outputOf({ messages, state }: TaskEnd): unknown {
  const last = messages.findLast(({ role }) => role === 'assistant')
  if (!last) return state ?? null
  if (last.meta?.output !== undefined) return last.meta.output
  const text = textOf(last)
  return readFenced(text) ?? text
}
