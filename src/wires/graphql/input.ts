import type { RunOptions } from '../../core/entries.ts'
import { RuntimeError } from '../../core/errors.ts'
import type { ModelParameters, ToolSpec } from '../../core/model.ts'
import type { ThreadState } from '../../core/state.ts'
import { containsText } from '../../lib/contains.ts'
import { sameJson } from '../../lib/json-patch.ts'
import { isStandIn } from '../asks.ts'
import { parseJson, tokenCounter } from '../body.ts'
import { forwardedHeaders } from '../http.ts'
import {
  maxAnswers,
  maxContextItems,
  maxMessages,
  maxTools,
  refuseLargeValue,
  refuseLongList,
} from '../limits.ts'
import type { ForwardedParameters, GenerateInput } from './shapes.ts'

/** Throws `invalid_request` for lists and values beyond the limits of a request. */
export function refuseLarge(data: GenerateInput, properties: Record<string, unknown>): void {
  const { messages, frontend, context, agentStates, metaEvents, forwardedParameters } = data
  refuseLongList(messages, maxMessages, 'data.messages')
  refuseLongList(frontend.actions, maxTools, 'data.frontend.actions')
  refuseLongList(context, maxContextItems, 'data.context')
  refuseLongList(agentStates, maxAnswers, 'data.agentStates')
  refuseLongList(metaEvents, maxAnswers, 'data.metaEvents')
  refuseLongList(forwardedParameters?.stop, maxAnswers, 'data.forwardedParameters.stop')
  refuseLargeValue(properties, 'properties')
}

/** Actions of the client that may be called: an agent may also call those only meant for agents. */
export function offered({ frontend, agentSession }: GenerateInput) {
  return frontend.actions.filter(
    ({ available }) => available !== 'disabled' && (agentSession || available !== 'remote'),
  )
}

export function toolsFrom(data: GenerateInput): ToolSpec[] {
  const actions = offered(data).filter(({ name }) => !isStandIn(name)) // the server calls those, the model does not
  const count = tokenCounter()
  for (const { jsonSchema } of actions) count(jsonSchema, 'data.frontend.actions')
  return actions.map(({ name, description, jsonSchema }) => {
    const parameters = json(jsonSchema, `frontend.actions.${name}.jsonSchema`)
    return { name, description, parameters }
  })
}

/** What is meant for the run beside its message. `instructions` are those among the messages. */
export function optionsFrom(
  data: GenerateInput,
  properties: Record<string, unknown>,
  instructions: readonly string[],
  request: Request,
): RunOptions {
  const { agentSession, agentStates, forwardedParameters } = data
  const own = agentStates?.find(({ agentName }) => agentName === agentSession?.agentName)
  const config = own?.config ? json(own.config, 'agentStates.config') : undefined
  const nodeName = agentSession?.nodeName
  const parameters = parametersFrom(forwardedParameters ?? {})
  return {
    instructions: [...instructions, ...contextFrom(data, instructions)],
    clientTools: toolsFrom(data),
    forwarded: {
      ...properties,
      ...(config !== undefined && { config }),
      ...(nodeName && { nodeName }),
    },
    headers: forwardedHeaders(request),
    ...(Object.keys(parameters).length > 0 && { parameters }),
  }
}

/** React has written most of the context into its system message already. */
function contextFrom({ context, frontend }: GenerateInput, instructions: readonly string[]) {
  const all = (context ?? []).map(({ description, value }) => ({ description, value }))
  const full = frontend.toDeprecate_fullContext
  if (full) all.push({ description: 'Context', value: full })
  const written = instructions.join('\n')
  const compares = written.length * all.length <= maxSearched
  return all
    .filter(({ value }) => !(compares && containsText(written, value)))
    .map(({ description, value }) => `${description}: ${value}`)
}

/** Characters that are searched for context; with more, context that is written already is sent again. */
const maxSearched = 1_000_000

export function parametersFrom(wishes: ForwardedParameters): ModelParameters {
  const { model, maxTokens, stop, temperature, toolChoice, toolChoiceFunctionName } = wishes
  const choice = choiceFrom(toolChoice, toolChoiceFunctionName)
  return {
    ...(model && { model }),
    ...(maxTokens != null && { maxOutputTokens: maxTokens }),
    ...(stop && stop.length > 0 && { stop }),
    ...(temperature != null && { temperature }),
    ...(choice !== undefined && { toolChoice: choice }),
  }
}

function choiceFrom(choice: string | null | undefined, name: string | null | undefined) {
  if (choice === 'function' && name) return { name }
  return choice === 'required' || choice === 'auto' || choice === 'none' ? choice : undefined
}

/** The client's copy of the agent's state, if it brought one that says something. */
export function ownState({ agentStates, agentSession, agentState }: GenerateInput): unknown {
  const named = (one: { agentName: string }) => one.agentName === agentSession?.agentName
  const own = agentStates?.find(named) ?? (agentState && named(agentState) ? agentState : undefined)
  if (!own) return undefined
  const given = json(own.state, 'agentStates.state')
  // Clients give back the messages that a state was sent with; they are the thread's.
  const { messages: _, ...value } = Object(given) as Record<string, unknown>
  return Array.isArray(given) || Object.keys(value).length === 0 ? undefined : value
}

/** The same, when it is another than ours. */
export function stateFrom(data: GenerateInput, state: ThreadState, agent: string) {
  const value = ownState(data)
  const same = value === undefined || sameJson(value, state.states.get(agent))
  return same ? {} : { state: { value } }
}

function json(text: string, field: string): unknown {
  const value = parseJson(text, field, (cause) => {
    throw new RuntimeError('invalid_request', `${field}: must be JSON text`, { cause, field })
  })
  refuseLargeValue(value, field)
  return value
}
