import type { Agent, AgentContext, Question } from './agent.ts'
import { type Toolbox, toolCaller } from './calls.ts'
import type { Bench } from './effects.ts'
import { type Answer, type Ask, draft } from './entries.ts'
import { LegStop } from './leg.ts'
import type { Model, ToolSpec } from './model.ts'
import { type CallRules, modelCaller } from './model-calls.ts'
import { defaultAskTimeout } from './policy.ts'
import { remoteLine } from './remote-legs.ts'
import { jsonSchemaOf, type Tool } from './tool.ts'

export interface AgentSetup {
  agent: Agent
  model: Model
  /** Asked when the model does not answer. */
  fallback?: Model
  toolbox: Toolbox
  rules: CallRules
}

/** Everything an agent may touch during a leg, each of it behind the ledger. */
export function contextOf(setup: AgentSetup, bench: Bench): AgentContext {
  const { model, fallback, toolbox, rules } = setup
  const { leg } = bench
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
    state: () => leg.thread.state.states.get(leg.run.agent),
    model: modelCaller(fallback ? [model, fallback] : [model], rules, bench),
    call: toolCaller(toolbox, bench),
    ask: (question) => ask(question, bench),
    remote: (name) => remoteLine(name, toolbox.guard, bench),
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

async function ask(question: Question, { leg, channel, clock, newId }: Bench): Promise<Answer> {
  const { timeout = defaultAskTimeout, key, ...rest } = question
  for (const askId of leg.run.askIds) {
    const record = leg.thread.state.asks.get(askId)
    if (record?.ask.key !== key) continue
    if (record.answer) return record.answer
    throw new LegStop('parked')
  }
  const deadline = clock.now() + timeout
  const asked: Ask = {
    atTimeout: 'reject',
    ...rest,
    askId: newId('ask'),
    step: leg.legId,
    key,
    deadline,
  }
  await channel.commit(draft('ask.raised', { ask: asked }))
  throw new LegStop('parked')
}
