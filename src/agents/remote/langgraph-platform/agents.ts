import type { Client, StreamMode } from '@langchain/langgraph-sdk'
import type { Agent, AgentEvent } from '../../../core/agent.ts'
import { RuntimeError, withoutSecretTexts } from '../../../core/errors.ts'
import { isStop, LegStop } from '../../../core/leg.ts'
import { digestOf } from '../../../lib/canonical.ts'
import { systemClock } from '../../../lib/clock.ts'
import { payloadOf } from '../answers.ts'
import { refusalOf } from '../egress.ts'
import { accepted, mayRepeat, pause, type Reach, type ReachOptions, reach } from '../reach.ts'
import {
  type LegEnd,
  type LegRequest,
  type RemoteAgentOptions,
  remoteAgent,
  uuidOf,
} from '../remote-agent.ts'
import { wrong } from '../scribe.ts'
import { Hearing } from './hearing.ts'
import { toLangChain } from './messages.ts'

export type LangGraphPlatformOptions = ReachOptions &
  Pick<RemoteAgentOptions, 'idempotent' | 'tools' | 'maxSteps'> & {
    deploymentUrl: string
    langsmithApiKey?: string
    /** Assistants or graphs of the deployment, by name: only these are ours. */
    agents: readonly (string | { name: string; assistant?: string; description?: string })[]
  }

const modes: StreamMode[] = ['messages-tuple', 'updates', 'values', 'custom']

/** How a run there is found again. */
const label = 'handrail_effect'

/** Times that a run which goes on is joined again after its stream has ended. */
const joins = 5

/** Maximum number of lookups before a run is rejoined. */
const lookups = 5

/** Graphs of a LangGraph Platform deployment, or of any server that has its API. */
export function langGraphPlatform(options: LangGraphPlatformOptions): Agent[] {
  const { deploymentUrl, langsmithApiKey, agents, ...rest } = options
  const way = reach(deploymentUrl, rest)
  return agents.map((one) => {
    const { name, assistant = name, description } = typeof one === 'string' ? { name: one } : one
    const about = { ...rest, name, ...(description !== undefined && { description }) }
    const open = async (ctx?: LegRequest['ctx'], signal?: AbortSignal) =>
      await clientFor(deploymentUrl, langsmithApiKey, way, ctx, signal)
    return remoteAgent(about, {
      timeout: way.total,
      work: (request) => work(name, assistant, way, open, request, rest.idempotent ?? false),
      async look({ effectId, attempt }, place, signal) {
        const { client } = await open(undefined, signal)
        const threadId = String(place?.threadId ?? uuidOf(effectId))
        return (await find(client, threadId, `${effectId}/${attempt}`)) ? 'there' : 'absent'
      },
    })
  })
}

type Open = (ctx?: LegRequest['ctx'], signal?: AbortSignal) => ReturnType<typeof clientFor>

async function* work(
  name: string,
  assistant: string,
  way: Reach,
  open: Open,
  request: LegRequest,
  idempotent: boolean,
): AsyncGenerator<AgentEvent, LegEnd, undefined> {
  const { ctx, signal, effectId, attempt, fork } = request
  const threadId = String(fork?.threadId ?? uuidOf(effectId))
  const hearing = new Hearing(name, ctx)
  const over = new AbortController()
  const ends = AbortSignal.any([signal, over.signal])
  const { client, secrets } = await open(ctx, ends)
  const effect = `${effectId}/${attempt}`
  let runId: string | undefined
  try {
    if (request.rejoin) {
      runId = await findAgain(client, threadId, effect, ends)
      // It was there a moment ago: starting it again could do the work twice.
      if (runId === undefined) throw new RuntimeError('remote_cut')
    } else {
      const create = () => client.threads.create({ threadId, ifExists: 'do_nothing' })
      yield* repeated(way, ends, async function* () {
        await create().catch((error: unknown) => {
          throw beforeBeginning(known(error))
        })
      })
      const payload = payloadFor(request, effect, way.properties(ctx))
      const created = ({ run_id }: { run_id: string }) => {
        runId = run_id
      }
      const more = { signal: ends, onRunCreated: created }
      const start = async function* () {
        await ctx.hold() // creating the thread, or an earlier attempt, may have taken a while
        const events = client.runs.stream(threadId, assistant, { ...payload, ...more })
        yield* readOn(events as Events, hearing, () => runId !== undefined && !ends.aborted)
      }
      yield* repeated(way, ends, start, () => runId === undefined, idempotent)
    }
    if (runId === undefined) throw wrong('it does not say which run it began')
    yield* joined(client, threadId, runId, request.rejoin ? '-1' : undefined, hearing, ends)
    const state = await client.threads.getState(threadId)
    yield* hearing.values((state.values ?? {}) as Record<string, unknown>)
    for (const task of state.tasks ?? []) hearing.ask(task.interrupts)
    yield* hearing.scribe.finish()
    yield* hearing.calls()
    const place = { threadId, checkpointId: state.checkpoint?.checkpoint_id, state: hearing.state }
    return { interrupts: hearing.interrupts, place }
  } catch (error) {
    const cancelled = ctx.signal.aborted && isStop(ctx.signal.reason, 'cancelled')
    if (cancelled && runId !== undefined) void stopThere(open, ctx, threadId, runId)
    yield* cancelled ? hearing.scribe.stop() : hearing.scribe.cut()
    if (signal.aborted) throw signal.reason
    if (error instanceof LegStop) throw error
    const failure = withoutSecretTexts(known(error), secrets)
    throw runId === undefined && !request.rejoin ? failure : begun(failure)
  } finally {
    over.abort()
  }
}

/** A run that has begun: whatever cannot be reached now, the work did start. */
const begun = (error: RuntimeError): RuntimeError =>
  error.code === 'remote_unavailable' || error.code === 'remote_outcome_unknown'
    ? new RuntimeError('remote_cut', undefined, { cause: error })
    : error

/** Makes a request. Repeats it with back-off while attempts remain and the failure means that no run was started, or the agent is idempotent. */
async function* repeated(
  { attempts }: Reach,
  signal: AbortSignal,
  make: () => AsyncGenerator<AgentEvent, void, undefined>,
  isOpen = () => true,
  idempotent = false,
): AsyncGenerator<AgentEvent, void, undefined> {
  for (let attempt = 1; ; attempt++) {
    try {
      return yield* make()
    } catch (error) {
      if (error instanceof LegStop) throw error
      const failure = known(error)
      const isLast = signal.aborted || attempt >= attempts
      if (isLast || !isOpen() || !mayRepeat(failure, idempotent)) throw failure
      const inMs = pause(attempt)
      const { code, message } = failure
      yield { type: 'event', name: 'retry', value: { attempt: attempt + 1, inMs, code, message } }
      await systemClock.sleep(inMs, signal)
    }
  }
}

/** No run can have begun before its thread was confirmed, whatever became of the thread. */
function beforeBeginning(error: RuntimeError): RuntimeError {
  const refusal = refusalOf(error)
  if (refusal) return refusal
  if (!lost.has(error.code)) return error
  return new RuntimeError('remote_unavailable', undefined, { cause: error })
}

/** A stream may end before its run does: then it is read on, until the run is over. */
async function* joined(
  client: Client,
  threadId: string,
  runId: string,
  from: string | undefined,
  hearing: Hearing,
  signal: AbortSignal,
): AsyncGenerator<AgentEvent, void, undefined> {
  let after = from
  for (let tries = 1; tries <= joins; tries++) {
    if (hearing.missed) await systemClock.sleep(pause(tries), signal)
    const run = await client.runs.get(threadId, runId).catch(unlessCut)
    if (!run) {
      hearing.missed = true
      continue
    }
    const { status } = run
    const goesOn = status === 'pending' || status === 'running'
    if (!goesOn && after === undefined) {
      if (status !== 'error' && status !== 'timeout') return
      throw new RuntimeError('remote_failed', 'The remote agent failed; it does not say why.')
    }
    const from = after === undefined ? {} : { lastEventId: after }
    after = undefined
    const events = client.runs.joinStream(threadId, runId, { signal, streamMode: modes, ...from })
    yield* readOn(events as Events, hearing, () => !signal.aborted)
  }
  throw new RuntimeError('remote_cut')
}

type Events = AsyncIterable<{ event: string; data: unknown }>

/** Reads what comes. A connection that is lost in the middle is no failure of the run: it can be joined. */
async function* readOn(
  events: Events,
  hearing: Hearing,
  mayJoin: () => boolean,
): AsyncGenerator<AgentEvent, void, undefined> {
  try {
    for await (const { event, data } of events) yield* hearing.take(event, data)
  } catch (error) {
    if (!mayJoin()) throw error
    unlessCut(error)
    hearing.missed = true
  }
}

function unlessCut(error: unknown): undefined {
  const { code } = known(error)
  if (lost.has(code) || code === 'remote_unavailable') return
  throw error
}

/** Failures after which a request may have been carried out. */
const lost = new Set<string>(['remote_cut', 'remote_timeout', 'remote_outcome_unknown'])

/** Finds the run. A lookup, which is only a read, is repeated if the remote cannot be reached or fails. */
async function findAgain(
  client: Client,
  threadId: string,
  effect: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  for (let tries = 1; ; tries++) {
    try {
      return await find(client, threadId, effect)
    } catch (error) {
      const { code } = known(error)
      const mayPass = lost.has(code) || code === 'remote_unavailable' || code === 'remote_failed'
      if (signal.aborted || !mayPass || tries >= lookups) throw error
      await systemClock.sleep(pause(tries), signal)
    }
  }
}

async function find(client: Client, threadId: string, effect: string): Promise<string | undefined> {
  const limit = 100
  for (let offset = 0; ; offset += limit) {
    const runs = await client.runs.list(threadId, { limit, offset }).catch((error: unknown) => {
      if (isNotFound(error)) return []
      throw known(error)
    })
    const run = runs.find(
      ({ metadata }) => (metadata as Record<string, unknown>)?.[label] === effect,
    )
    if (run) return run.run_id
    if (runs.length < limit) return undefined
  }
}

function payloadFor(request: LegRequest, effect: string, properties: Record<string, unknown>) {
  const { ctx, answers, fresh, messages, tools, fork } = request
  const given = answers.map(({ interrupt, answer }) => {
    const payload = payloadOf(answer) ?? { approved: false, reason: answer.reason ?? 'No answer.' }
    return [interrupt.id, payload] as const
  })
  const resume = given.length === 1 ? given[0]![1] : Object.fromEntries(given)
  const input = {
    ...changed(ctx.state(), fork?.state as Record<string, string> | undefined),
    messages: toLangChain(fresh, messages),
    ...(tools.length > 0 && { copilotkit: { actions: tools } }),
  }
  const checkpoint = fork?.checkpointId
  return {
    ...(answers.length > 0 ? { command: { resume } } : { input }),
    // Never the latest: another branch may have gone on there.
    ...(typeof checkpoint === 'string' && {
      checkpoint: { checkpoint_id: checkpoint, checkpoint_ns: '', checkpoint_map: {} },
    }),
    config: { configurable: properties },
    metadata: { [label]: effect },
    streamMode: modes,
    streamResumable: true,
    onDisconnect: 'continue' as const, // so that it can be joined again
    multitaskStrategy: 'interrupt' as const,
  }
}

/** What the client changed of the state since the graph left it; lists would be added to themselves. */
function changed(state: unknown, left: Record<string, string> = {}): Record<string, unknown> {
  if (typeof state !== 'object' || state === null || Array.isArray(state)) return {}
  const parts = Object.entries(state)
  return Object.fromEntries(parts.filter(([name, value]) => left[name] !== digestOf(value ?? null)))
}

async function stopThere(open: Open, ctx: LegRequest['ctx'], threadId: string, runId: string) {
  const signal = AbortSignal.timeout(5_000)
  await open(ctx, signal)
    .then(({ client }) => client.runs.cancel(threadId, runId))
    .catch(() => {})
}

/** Makes a client, and returns it with the texts that its errors must not repeat. */
async function clientFor(
  apiUrl: string,
  key: string | undefined,
  way: Reach,
  ctx: LegRequest['ctx'] | undefined,
  signal: AbortSignal | undefined,
): Promise<{ client: Client; secrets: readonly string[] }> {
  const { Client } = await import('@langchain/langgraph-sdk')
  const headers = await way.headers(ctx)
  const secrets = way.secrets({ ...headers, ...(key !== undefined && { 'x-api-key': key }) }, ctx)
  const fetch = async (url: string | URL, init: RequestInit = {}) => {
    const signals = [signal, init.signal ?? undefined].filter((one) => one !== undefined)
    const response = await way.fetch(url, { ...init, signal: AbortSignal.any(signals) })
    return response.status === 404 ? response : await accepted(response, secrets)
  }
  const client = new Client({
    apiUrl,
    apiKey: key ?? null, // otherwise it would take one of our environment
    defaultHeaders: headers,
    callerOptions: { maxRetries: 0, fetch: fetch as typeof globalThis.fetch },
  })
  return { client, secrets }
}

const isNotFound = (error: unknown) => (error as { status?: number } | undefined)?.status === 404

/** What its library throws, by what it means. */
function known(error: unknown): RuntimeError {
  for (let one: unknown = error; one instanceof Error; one = one.cause)
    if (one instanceof RuntimeError) return one
  if (isNotFound(error)) return new RuntimeError('remote_refused', 'There is no such remote agent.')
  return wrong((error instanceof Error ? error.message : String(error)).slice(0, 300))
}
