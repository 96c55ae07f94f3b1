import { messagesOf } from '../../core/branch.ts'
import { isRuntimeError, RuntimeError } from '../../core/errors.ts'
import { cursorAt } from '../../core/follow.ts'
import { type RequestKey, usedKey } from '../../core/keys.ts'
import { textOf } from '../../core/messages.ts'
import { type Reconciled, reconcile } from '../../core/reconcile.ts'
import { isSettled, type Meant } from '../../core/refusals.ts'
import type { Caller, Runtime } from '../../core/runtime.ts'
import { emptyState, type ThreadState } from '../../core/state.ts'
import type { Thread } from '../../core/thread.ts'
import type { Log } from '../../core/worker.ts'
import { isLong, jsonSteps, unhurried } from '../../lib/json-steps.ts'
import { idByKey, keyOf, lastUserContents } from '../approve.ts'
import { waitsInside } from '../asks.ts'
import { refuseContradiction } from '../decisions.ts'
import { clientId, isSafeMethod } from '../http.ts'
import { refuseManyNew } from '../limits.ts'
import { unknownPlace } from '../resume.ts'
import { answersIn, nameIn } from './answers.ts'
import { clientRulesOf } from './client-rules.ts'
import type { Generated } from './events.ts'
import { failedStatus } from './failures.ts'
import { offered, optionsFrom, ownState, refuseLarge, stateFrom } from './input.ts'
import { shownIds } from './interrupts.ts'
import { fullStop } from './making.ts'
import { fromClient, idsIn, listed, toClientInSteps } from './messages.ts'
import { isOnce, once } from './once.ts'
import { isBlocked, isUpToDate } from './seen.ts'
import type {
  AvailableAgents,
  Extensions,
  GenerateInput,
  LoadAgentStateInput,
  LoadedState,
} from './shapes.ts'
import { type StopRule, stops } from './stops.ts'
import { told } from './stream.ts'
import { type Listener, stateWithoutMessages, Telling } from './telling.ts'

export interface Asked {
  caller: Caller
  request: Request
}

interface Said extends Asked {
  agent: string
  threadId: string
  data: GenerateInput
  properties: Record<string, unknown>
  key: RequestKey | undefined
}

/** What GraphQL clients do with a thread: say, answer, join, load. */
export function graphqlRuns(runtime: Runtime, rule: StopRule, log: Log) {
  const stopping = stops(runtime, rule, log)

  const find = (name: string | undefined) => {
    const all = runtime.agents()
    const known = all.find(({ agent, aliases }) => agent.name === name || aliases.includes(name!))
    if (name !== undefined && !known) {
      const names = all.map(({ agent }) => agent.name).join(', ')
      const problem = `There is no agent named ${name}. This server has: ${names}.`
      throw new RuntimeError('agent_not_found', problem, { field: 'agentName' })
    }
    return known ?? all[0]!
  }

  async function generate(
    data: GenerateInput,
    properties: Record<string, unknown>,
    asked: Asked,
  ): Promise<Generated> {
    refuseLarge(data, properties)
    const { agent } = find(data.agentSession?.agentName)
    const { key } = keyFor(asked.request, agent.name, data)
    const fresh = idByKey('thread', asked.caller, key) ?? runtime.newId('thread')
    const given = data.threadId ?? data.agentSession?.threadId ?? fresh
    const threadId = idFrom(given, 'data.threadId')
    const said: Said = { ...asked, agent: agent.name, threadId, data, properties, key }
    if (isOnce(data) && continues(asked)) return refused(said, unknownPlace())
    if (!isOnce(data))
      return await take(said).catch((error: unknown) => {
        const meant = meantBy(data, threadId)
        if (meant.ask !== undefined) runtime.answers.refused(asked.caller, meant, error)
        return refused(said, error)
      })
    return answered(said, null, (signal) => once(runtime, asked.caller, agent.name, data, signal))
  }

  /** Answers first, then what is said; without either, what the client has not seen. */
  async function take(one: Said): Promise<Generated> {
    const { caller, agent, data, threadId } = one
    const thread = await runtime.find(caller, threadId)
    const state = thread?.state ?? emptyState('')
    usedKey(state, one.key) // before answers are recorded, so that a refused request changes nothing
    const messages = fromClient(data.messages, state)
    const news = reconcile(state, { messages, regenerates: false })
    // Streams of this wire have no ids: a request that continues one contains only messages that are known.
    if (news.said.length > 0 && continues(one)) throw unknownPlace()
    refuseManyNew([...news.imported, ...news.said], 'data.messages')
    const shown = news.forged.length > 0 ? shownIds(state) : new Set()
    const forged = news.forged.find((callId) => !shown.has(callId))
    if (forged !== undefined) throw unknownResult(forged)
    refuseContradiction(news)
    const to = listenerOf(one)
    const decisions = answersIn(state, data, news)
    const meant = meantBy(data, threadId)
    if (decisions.length === 0 && isSettled(state, meant.ask)) runtime.answers.late(caller, meant)
    const onlyCalls = decisions.every(({ askId }) => isCall(state, askId))
    if (news.said.length > 0 && onlyCalls && !isBlocked(state, to)) return await say(one, news, to)
    if (!thread && meant.ask !== undefined) throw unknownResult(meant.ask)
    if (!thread) return nothing(one, to)
    if (decisions.length === 0) return await join(one, thread, to)
    const from = { seq: state.seq, shared: state.states.get(agent) }
    const options = optionsFrom(data, one.properties, news.instructions, one.request)
    const more = { ...stateFrom(data, state, agent), options }
    news.said = news.said.filter(({ id }) => !state.refused.has(id))
    const rules = clientRulesOf(data)
    const saying = { messages: news.said, agent, ...(rules && { rules }) }
    if (news.said.length > 0) await runtime.admits(caller, threadId, saying)
    const done = await runtime.answer(caller, threadId, { decisions, ...more })
    if (news.said.length > 0) return await say(one, news, to, 'queue')
    const runId = state.active
    const goesOn = done.settled.size > 0 && runId !== null
    const run = goesOn ? state.runs.get(runId) : undefined
    const waits = run?.status === 'waiting' || waitsInside(state, run)
    if (!goesOn || waits) return await join(one, thread, to)
    return tell(one, thread, runId, to, from)
  }

  async function say(one: Said, news: Reconciled, to: Listener, busy?: 'queue') {
    const { caller, agent, data, threadId, properties, request, key } = one
    const state = (await runtime.find(caller, threadId))?.state ?? emptyState('')
    const results = news.results.map(({ askId, message }) => {
      return { askId, text: textOf(message), messageId: message.id }
    })
    const rules = clientRulesOf(data)
    const begun = await runtime.start(caller, threadId, {
      messages: news.said,
      imported: news.imported,
      results,
      agent,
      whenBusy: busy ?? 'cancel',
      options: optionsFrom(data, properties, news.instructions, request),
      ...stateFrom(data, state, agent),
      ...(rules && { rules }),
      ...(key && { key }),
    })
    if (!begun.fresh) return await join(one, begun.thread, to, begun.runId)
    return tell(one, begun.thread, begun.runId, to)
  }

  /** What the client lacks of the run that is at work, or was last. */
  async function join(one: Said, thread: Thread, to: Listener, which?: string) {
    const { state } = thread
    const runId = which ?? state.active ?? state.head
    const run = state.runs.get(runId ?? '')
    if (!run) return nothing(one, to)
    await stopping.returned(one.caller, one.threadId)
    return tell(one, thread, run.runId, to)
  }

  /** From its start, unless it is told from where something was answered. */
  function tell(
    one: Said,
    thread: Thread,
    runId: string,
    to: Listener,
    from = startOf(thread, runId),
  ) {
    const { caller, threadId } = one
    const lacks = () => !isUpToDate(thread.state, one.data, to, runId)
    const telling = new Telling(to, thread, runId, from.shared, lacks)
    return answered(
      one,
      runId,
      (signal) => {
        const left = () => {
          if (!telling.over) stopping.left(caller, threadId, runId, thread.state.seq)
        }
        if (signal.aborted) left()
        else signal.addEventListener('abort', left, { once: true })
        return told(thread, cursorAt(from.seq), telling, runtime.clock, signal)
      },
      thread.state,
    )
  }

  const nothing = (one: Said, { endsInCall }: Listener): Generated =>
    answered(one, null, async function* () {
      const end = endsInCall ? fullStop(runtime.newId('msg'), runtime.clock.now()) : []
      yield [...end, { type: 'ResponseEnd', status: { code: 'Success' } }]
    })

  function listenerOf({ data, threadId }: Said): Listener {
    const name = data.agentSession?.agentName
    const tools = new Set(offered(data).map((one) => one.name))
    const own = find(name).tools.map((one) => one.name)
    const hidden = new Set(own.filter((one) => tools.has(one)))
    const last = data.messages.findLast((one) => !one.agentStateMessage)
    const endsInCall = Boolean(last?.resultMessage ?? last?.actionExecutionMessage)
    const has = idsIn(data.messages)
    return { threadId, agent: name, tools, hidden, has, endsInCall, state: ownState(data) }
  }

  return {
    generate,

    availableAgents: async (): Promise<AvailableAgents> => ({
      agents: runtime.agents().flatMap(({ agent, aliases, description = '' }) => {
        const names = new Set([agent.name, ...aliases])
        return [...names].map((name) => ({ id: name, name, description }))
      }),
    }),

    async loadAgentState(
      data: LoadAgentStateInput,
      { caller, request }: Asked,
    ): Promise<LoadedState> {
      const { agent } = find(data.agentName)
      const threadId = idFrom(data.threadId, 'data.threadId')
      const thread = await runtime.find(caller, threadId)
      const [noState, noMessages] = [async () => '{}', async () => '[]']
      if (!thread) return { threadId, threadExists: false, state: noState, messages: noMessages }
      // CopilotKit's clients load by POST. A GET must not write, so it does not keep a run from being stopped.
      if (!isSafeMethod(request.method)) await stopping.returned(caller, threadId)
      const { state } = thread
      return {
        threadId,
        threadExists: true,
        async state() {
          const value = stateWithoutMessages(state.states.get(agent.name))
          return isLong(value) ? () => unhurried(jsonSteps(value)) : JSON.stringify(value)
        },
        async messages() {
          const messages = await toClientInSteps(state)
          if (isLong(messages)) return () => thread.filledSteps(messages)
          return await thread.filled(JSON.stringify(messages))
        },
      }
    },
  }
}

function startOf({ state }: Thread, runId: string): { seq: number; shared: unknown } {
  const { firstSeq, before } = state.runs.get(runId)!
  return { seq: firstSeq - 1, shared: before }
}

/** Service adapters keep what they need at their provider: a client is told it again. */
function answered(
  { threadId, data }: Said,
  runId: string | null,
  events: Generated['events'],
  state?: ThreadState,
): Generated {
  const kept = state ? messagesOf(state).findLast(({ meta }) => meta?.extensions)?.meta : undefined
  const { openaiAssistantAPI } = { ...data.extensions, ...Object(kept?.extensions) } as Extensions
  const extensions = openaiAssistantAPI ? { openaiAssistantAPI } : null
  return { threadId, runId: data.runId ?? runId, extensions, events }
}

/** What the rules forbid, or nobody could check, is told as the status of a response. */
function refused(one: Said, error: unknown): Generated {
  if (!isRuntimeError(error, 'guardrail') && !isRuntimeError(error, 'guardrail_away')) throw error
  return answered(one, null, async function* () {
    yield [{ type: 'ResponseEnd', status: failedStatus(error) }]
  })
}

/** Returns the request's Idempotency-Key with a digest of the agent and the last user messages. Answers are identified by their question. */
function keyFor(request: Request, agent: string, { messages }: GenerateInput) {
  if (!request.headers.has('idempotency-key')) return {} // without reading the messages
  return keyOf(request, ['generate', agent, lastUserContents(listed(messages))])
}

/** What a request is sent to answer, by a meta event or by the result that it ends in; it may be nothing. */
function meantBy({ messages, metaEvents }: GenerateInput, thread: string): Meant {
  const meta = metaEvents?.find(({ response }) => response)
  const ask = meta ? nameIn(meta) : messages.at(-1)?.resultMessage?.actionExecutionId
  return { thread, ...(ask !== undefined && { ask }) }
}

const isCall = (state: ThreadState, askId: string): boolean =>
  state.asks.get(askId)?.ask.kind === 'client_tool'

function idFrom(id: string, field: string): string {
  const parsed = clientId.safeParse(id)
  if (parsed.success) return parsed.data
  const problem = `${field}: ${parsed.error.issues[0]!.message}`
  throw new RuntimeError('invalid_id', problem, { field })
}

const unknownResult = (callId: string) =>
  new RuntimeError('result_unknown', `actionExecutionId ${callId}: no such call was made here.`, {
    field: 'messages',
  })

const continues = ({ request }: Asked): boolean => !!request.headers.get('last-event-id')
