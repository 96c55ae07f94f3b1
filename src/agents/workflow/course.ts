import type { AgentContext, AgentEvent } from '../../core/agent.ts'
import { withChanges } from '../../core/edited.ts'
import { RuntimeError, toRuntimeError } from '../../core/errors.ts'
import { LegStop } from '../../core/leg.ts'
import { type AgentMoved, agentMoved, workflowEnded } from '../../core/workflow-events.ts'
import { atOnce } from '../../lib/at-once.ts'
import { sha256 } from '../../lib/canonical.ts'
import type { Say } from '../../lib/saying.ts'
import { namesOf, stateFor, summaryOf } from './begin.ts'
import {
  type Approval,
  isApproval,
  nameOf,
  type Step,
  stepsOf,
  type WorkflowOptions,
} from './options.ts'
import {
  approvalOf,
  failedOutput,
  finalOutput,
  type SharedState,
  type StepError,
  standing,
} from './state.ts'
import { settleCalls, work } from './step.ts'

/** One leg of a workflow, from where the last one left it. */
export class Course {
  readonly #options: WorkflowOptions
  /** Of the outputs, in order. */
  readonly #keys: readonly string[]
  readonly #ctx: AgentContext
  readonly #say: Say<AgentEvent>
  readonly #state: SharedState
  /** What steps are called where work is shown by steps. */
  readonly #names: ReadonlyMap<Step, string>

  constructor(
    options: WorkflowOptions,
    keys: readonly string[],
    ctx: AgentContext,
    say: Say<AgentEvent>,
  ) {
    this.#options = options
    this.#keys = keys
    this.#ctx = ctx
    this.#say = say
    this.#state = stateFor(options, ctx)
    this.#names = namesOf(options)
  }

  async run(): Promise<void> {
    if (this.#state.status === 'completed') return // all is said
    this.#state.status = 'running'
    for (const [i, stage] of this.#options.steps.entries()) {
      if (!isApproval(stage)) await this.#steps(stepsOf(stage))
      else if (!(await this.#approved(stage, i))) break
    }
    this.#state.status = 'completed'
    await this.#end(finalOutput(this.#state, this.#keys))
  }

  /** Steps side by side: each comes to its end, or to a question, before anything else is decided. */
  async #steps(steps: readonly Step[]): Promise<void> {
    const rest = steps.values()
    const { maxConcurrentAgents = 3 } = this.#options
    const failures: { step: Step; thrown: unknown }[] = []
    const worker = async () => {
      for (const step of rest) {
        if (failures.some(({ thrown }) => !isParked(thrown))) return
        await this.#step(step).catch((thrown: unknown) => failures.push({ step, thrown }))
      }
    }
    await Promise.all(Array.from({ length: Math.min(maxConcurrentAgents, steps.length) }, worker))
    const stop = failures.find(({ thrown }) => thrown instanceof LegStop && !isParked(thrown))
    if (stop) throw stop.thrown
    this.#ctx.signal.throwIfAborted()
    const failed = failures.find(({ thrown }) => !isParked(thrown))
    if (failed) await this.#fail(failed.step, failed.thrown)
    if (failures.length > 0) throw new LegStop('parked')
  }

  async #step(step: Step): Promise<void> {
    const state = this.#state
    const { outputKey, required = true } = step
    const known = state.agents[outputKey]
    if (known?.status === 'completed' || (known?.status === 'failed' && !required)) return
    const agent = nameOf(step)
    const name = this.#names.get(step)!
    await this.#say({ type: 'step', name, done: false })
    try {
      const { output, usage } = await work(step, state, this.#ctx, (moved) => this.#moved(moved))
      const record = state.agents[outputKey]!
      record.status = 'completed'
      record.duration_ms = this.#ctx.clock.now() - record.started_at
      state[outputKey] = output
      state.agents_completed.push(agent)
      state.metrics.agent_durations[agent] = record.duration_ms
      const { inputTokens = 0, outputTokens = 0 } = usage
      state.metrics.token_usage[agent] = { input_tokens: inputTokens, output_tokens: outputTokens }
      await this.#moved({ ...about(step, state), status: 'completed', output }, name)
    } catch (caught) {
      const thrown = required ? caught : await this.#settled(step, caught)
      if (thrown instanceof LegStop || this.#ctx.signal.aborted) {
        await this.#stopped(outputKey, thrown)
        throw thrown
      }
      const { code, message: error } = toRuntimeError(thrown, 'agent_failed')
      const told = { error, code, critical: required }
      const record = state.agents[outputKey]!
      record.status = 'failed'
      record.duration_ms = this.#ctx.clock.now() - record.started_at
      state.failed_agents.push(agent)
      state.errors.push({ agent, ...told })
      await this.#moved({ ...about(step, state), status: 'failed', ...told }, name)
      if (required) throw thrown
      this.#ctx.report(thrown, about(step, state), 'an optional step failed')
    }
  }

  /**
   * Returns the failure of an optional step once the outcome of each of its calls is known, or why the leg ends first:
   * the workflow goes on without the step, so nobody would look at them later.
   */
  async #settled(step: Step, thrown: unknown): Promise<unknown> {
    if (thrown instanceof LegStop || this.#ctx.signal.aborted) return thrown
    const failure = toRuntimeError(thrown, 'agent_failed')
    try {
      await settleCalls(step, this.#state, failure, this.#ctx)
      return thrown
    } catch (stop) {
      return stop
    }
  }

  /** What waits for a person may take its time: its clock begins anew with the answer. */
  async #stopped(outputKey: string, thrown: unknown): Promise<void> {
    const record = this.#state.agents[outputKey]
    if (!record || !isParked(thrown)) return
    record.status = 'waiting'
    await this.#say(this.#shared())
  }

  /** Tells how an agent stands, with the state that says so too, and the end of its step. */
  async #moved(moved: AgentMoved, over?: string): Promise<void> {
    const value = { ...moved, agents: standing(this.#state) }
    const end = over === undefined ? [] : [{ type: 'step' as const, name: over, done: true }]
    await this.#say({ type: 'event', name: agentMoved, value }, this.#shared(), ...end)
  }

  #shared(): AgentEvent {
    return { type: 'state', value: structuredClone(this.#state) }
  }

  /** Whether it goes on. */
  async #approved(approval: Approval, index: number): Promise<boolean> {
    const state = this.#state
    const value = state[approval.approve]
    if (this.#options.enableApprovalWorkflow === false || isNothing(value)) return true
    const all = Array.isArray(value) ? value : [value]
    const [first] = all
    const key = `approval:${index}`
    const answer = await this.#ctx.ask({
      key,
      kind: 'approval',
      title:
        words(() => approval.title?.(first, state)) ??
        `Approve the ${approval.approve} of ${state.workflow}?`,
      input: { recommendation: first, ...(all.length > 1 && { recommendations: all }) },
      timeout: approval.timeout ?? 300_000,
      atTimeout: approval.atTimeout ?? 'reject',
      ...(approval.schema !== undefined && {
        editable: true,
        partialEdit: true,
        schema: changing(approval.schema),
      }),
      ...(approval.audience && { audience: [...approval.audience] }),
    })
    const record = this.#ctx.asked(key)!
    state.approval = approvalOf(record, first)
    if (answer.input !== undefined) {
      const { recommendation: now } = withChanges(record.ask.input, answer.input)
      state[approval.approve] = Array.isArray(value) ? [now, ...all.slice(1)] : now
    }
    return answer.state === 'approved'
  }

  async #fail(step: Step, thrown: unknown): Promise<never> {
    const state = this.#state
    state.status = 'error'
    const agent = nameOf(step)
    const told = toRuntimeError(thrown, 'agent_failed')
    const error: StepError = { agent, error: told.message, code: told.code, critical: true }
    await this.#end(failedOutput(structuredClone(state), error))
    throw new RuntimeError(told.code, `Critical agent ${agent} failed: ${told.message}`, {
      cause: thrown,
    })
  }

  async #end(final_output: object): Promise<void> {
    const state = this.#state
    const { workflow, account_id = null, metrics } = state
    metrics.total_duration_ms = this.#ctx.clock.now() - metrics.started_at
    const text = words(() => this.#options.summary?.(state)) ?? summaryOf(state)
    // The same in every leg that comes this far with the same failures. A workflow that is a step of
    // another one has a first message of its own, so that the two summaries have different ids.
    const [first] = this.#ctx.messages()
    const key = `${this.#ctx.runId}/${first?.id}/end/${state.failed_agents.length}`
    const id = `msg_${sha256(key).slice(0, 26)}`
    const said = this.#ctx.messages().some((one) => one.id === id)
    const meta = { output: { ...final_output, metrics } }
    const message = {
      id,
      role: 'assistant' as const,
      parts: [{ type: 'text' as const, text }],
      meta,
    }
    const value = { workflow, account_id, final_output: meta.output }
    await this.#say(
      ...(said ? [] : [{ type: 'message' as const, message }]),
      { type: 'event', name: workflowEnded, value },
      this.#shared(),
    )
  }
}

/** Of what somebody's code gives, what is text. */
function words(make: () => unknown): string | undefined {
  const made = atOnce(make)
  return typeof made === 'string' ? made : undefined
}

/** What a model gives may have a `length` that it names itself. */
const isNothing = (value: unknown): boolean =>
  value === undefined || value === null || value === '' || (Array.isArray(value) && !value.length)

const isParked = (thrown: unknown) => thrown instanceof LegStop && thrown.why === 'parked'

/** What a person may send back with an approval. */
const changing = (schema: unknown) => ({
  type: 'object',
  properties: { recommendation: schema },
  required: ['recommendation'],
  additionalProperties: false,
})

const about = (step: Step, state: SharedState) => ({
  agent: nameOf(step),
  path: step.outputKey,
  step: state.agents[step.outputKey]!.step,
})
