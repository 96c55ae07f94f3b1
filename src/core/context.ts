import { isJson, lossIn } from '../lib/json.ts'
import { withoutTexts } from '../lib/masked.ts'
import { shownLine } from '../lib/visible.ts'
import type { Agent, AgentContext, Question } from './agent.ts'
import { askUnder } from './asked.ts'
import { keptFor } from './branch.ts'
import { type Toolbox, toolCaller } from './calls.ts'
import { cardOf } from './card.ts'
import { delegate } from './delegate.ts'
import { type Bench, placed, workerOf } from './effects.ts'
import { type Answer, type Ask, draft } from './entries.ts'
import { RuntimeError } from './errors.ts'
import type { GovernorRules } from './governor.ts'
import { guardedModel } from './guard.ts'
import { holdLease, LegStop } from './leg.ts'
import type { Model, ToolSpec } from './model.ts'
import { type CallRules, meteredCall, modelCaller } from './model-calls.ts'
import { defaultAskTimeout } from './policy.ts'
import { remoteLine } from './remote-legs.ts'
import { jsonSchemaOf, type Risk, type Tool } from './tool.ts'

export interface AgentSetup {
  agent: Agent
  model: Model
  /** Asked when the model does not answer. */
  fallback?: Model
  /** Asked in its place where a person chose so when the budget was spent. */
  cheaper?: Model
  toolbox: Toolbox
  rules: CallRules
  governor: GovernorRules
}

/** Everything an agent may touch during a leg, each of it behind the ledger. */
export function contextOf(setup: AgentSetup, bench: Bench): AgentContext {
  const { toolbox } = setup
  const { leg, channel } = bench
  const { key } = workerOf(bench)
  const { state } = leg.thread
  const callModel = modelCaller(setup, bench)
  const callTools = toolCaller(toolbox, bench)
  const clientTools = (leg.run.options.clientTools ?? []).map(
    ({ name, description = '', parameters = { type: 'object' } }): ToolSpec => {
      return { name, description, parameters }
    },
  )
  return {
    threadId: leg.thread.threadId,
    runId: leg.runId,
    legId: leg.legId,
    signal: leg.signal,
    options: bench.secrets.join(leg.runId, leg.run.options),
    newId: bench.newId,
    get tools() {
      const own = toolbox.tools()
      const others = clientTools.filter(({ name }) => !own.has(name))
      return [...[...own.values()].map(specOf), ...others]
    },
    messages: () => bench.messages,
    whole: leg.thread.whole,
    state: () => state.states.get(key),
    given: () => (bench.part ? undefined : leg.run.given),
    kept: () => keptFor(state, leg.run, key),
    keep: (checkpointId, data) =>
      channel.write(draft('checkpoint.kept', { agent: key, checkpointId, data })),
    metered: (call) => meteredCall(call, setup.rules, bench),
    model: (call) => {
      const by = call.by && guardedModel(call.by, toolbox.guard)
      return bench.work.add(callModel(by ? { ...call, by } : call))
    },
    call: (calls) => bench.work.add(callTools(calls)),
    remote: (name) => {
      const { guard, evidence } = toolbox
      return remoteLine(name, { governor: setup.governor, guard, evidence }, bench)
    },
    ask: (question) => bench.work.add(raise(question, bench)),
    asked: (asked) => askUnder(bench, keyAt(bench, asked)),
    clock: bench.clock,
    hold: () => holdLease(leg, channel),
    redact: (text) => withoutTexts(text, leg.secrets?.() ?? []),
    report: bench.report,
    delegate: (task) => bench.work.add(delegate(task, { setup, bench, context: contextOf })),
  }
}

const specs = new WeakMap<Tool, ToolSpec>()

/** The same tool has the same specification: each is digested once. */
function specOf(tool: Tool): ToolSpec {
  let spec = specs.get(tool)
  if (!spec) {
    const { name, description } = tool
    spec = { name, description, parameters: jsonSchemaOf(tool) }
    specs.set(tool, spec)
  }
  return spec
}

/** Characters of a question's title. */
const longestTitle = 2_000

/** Sub-agents may ask under the same keys: each is asked its own. */
const keyAt = (bench: Bench, key: string): string => placed(bench, key)

/** It is about no call: what is done then has to pass the policy itself. */
const byAgent: Risk = { level: 'medium', why: 'An agent asks before it goes on.' }

async function raise(question: Question, bench: Bench): Promise<Answer> {
  const { leg, channel, clock, newId } = bench
  const { timeout = defaultAskTimeout, ...given } = question
  const key = keyAt(bench, question.key)
  const record = askUnder(bench, key)
  if (record?.answer) return record.answer
  if (record) throw new LegStop('parked')
  if (leg.settling) throw leg.settling
  const deadline = clock.now() + timeout
  const input = askable(question)
  const rest = { ...given, ...(input !== undefined && { input }) }
  const title = shownLine(rest.title, longestTitle)
  const { kind } = rest
  const parts = { title, agent: workerOf(bench).agent, input, risk: byAgent }
  const asked: Ask = {
    atTimeout: 'reject',
    ...rest,
    title,
    ...(kind === 'approval' && { card: cardOf(parts) }),
    askId: newId('ask'),
    step: leg.legId,
    key,
    deadline,
  }
  await channel.commit(draft('ask.raised', { ask: asked }))
  throw new LegStop('parked')
}

/** Returns the input of a question as JSON. A person must not approve what its JSON, and so the card, does not show. */
function askable({ input }: Question): unknown {
  if (input === undefined || isJson(input)) return input
  const loss = lossIn(input, 'input', { strict: true })
  if (loss === undefined) return JSON.parse(JSON.stringify(input))
  const text = `The agent asked with an input that JSON does not represent: ${loss}. Use plain objects, lists, texts and numbers.`
  throw new RuntimeError('agent_failed', text)
}
