import type { AbstractAgent, BaseEvent, RunAgentInput } from '@ag-ui/client'
import type { Agent, AgentEvent } from '../../../core/agent.ts'
import { connectionSecrets } from '../../../core/connection-secrets.ts'
import { RuntimeError, withoutSecretTexts } from '../../../core/errors.ts'
import { isStop } from '../../../core/leg.ts'
import { systemClock } from '../../../lib/clock.ts'
import { lazily } from '../../../lib/lazily.ts'
import { withoutTexts } from '../../../lib/masked.ts'
import { payloadOf } from '../answers.ts'
import { mayRepeat, pause, type Reach, type ReachOptions, reach } from '../reach.ts'
import {
  type LegEnd,
  type LegRequest,
  type RemoteAgentOptions,
  remoteAgent,
  uuidOf,
} from '../remote-agent.ts'
import { wrong } from '../scribe.ts'
import { readEvent } from './events.ts'
import { Hearing, legacyPrefix } from './hearing.ts'
import { toAgui } from './messages.ts'
import { type Observed, observe } from './observed.ts'
import { Transport } from './transport.ts'

export type AguiAgentOptions = RemoteAgentOptions &
  ReachOptions & {
    /** Where its runs are posted to; or the agent itself, any of AG-UI's own kind. */
    url?: string
    agent?: AbstractAgent
  }

/** Loading it blocks the event loop for 60 ms, so it is loaded when the first agent is configured, not with its first run. */
const aguiClient = lazily(() => import('@ag-ui/client'))

/** An agent that speaks AG-UI: over HTTP, or an object of one of its libraries in this process. */
export function aguiAgent(options: AguiAgentOptions): Agent {
  const { name, url, agent } = options
  const way = url === undefined ? undefined : reach(url, options)
  if (!way && !agent)
    throw new TypeError(`${name}: give the url of the agent, or the agent itself.`)
  if (way) aguiClient().catch(() => {}) // the first run loads it again, and reports the error
  const timeout = way?.total ?? options.timeouts?.total ?? 600_000
  const place = ({ place: at, effectId }: LegRequest) => String(at?.threadId ?? uuidOf(effectId))
  return remoteAgent(options, {
    timeout,
    async *work(request): AsyncGenerator<AgentEvent, LegEnd, undefined> {
      const threadId = place(request)
      const input = inputFor(request, threadId, way?.properties(request.ctx) ?? {})
      const hearing = new Hearing(name, `${name}/${threadId}`, request)
      try {
        if (way) yield* overHttp(url!, way, input, hearing, request, options.idempotent ?? false)
        else yield* here(agent!, input, hearing, request)
      } catch (error) {
        const { signal } = request.ctx
        const stopped = signal.aborted && isStop(signal.reason, 'cancelled')
        yield* stopped ? hearing.scribe.stop() : hearing.scribe.cut()
        throw error
      }
      return { interrupts: hearing.end ?? [], place: { threadId } }
    },
  })
}

/** Sends the request again while the work did not start, or is idempotent. */
async function* overHttp(
  url: string,
  way: Reach,
  input: RunAgentInput,
  hearing: Hearing,
  { ctx, signal, effectId }: LegRequest,
  idempotent: boolean,
): AsyncGenerator<AgentEvent, void, undefined> {
  const { HttpAgent } = await aguiClient()
  for (let attempt = 1; ; attempt++) {
    const own = await way.headers(ctx)
    const secrets = way.secrets(own, ctx)
    const transport = new Transport(way.fetch, secrets)
    const headers = { ...own, 'idempotency-key': effectId }
    const client = new HttpAgent({ url, headers, fetch: transport.fetch })
    await ctx.hold()
    const stop = () => {
      client.abortRun()
      if (isStop(ctx.signal.reason, 'cancelled')) void stopThere(url, way, headers, input)
    }
    signal.addEventListener('abort', stop, { once: true })
    try {
      yield* heard(client.run(input), hearing, signal, transport)
      return
    } catch (error) {
      if (signal.aborted) throw signal.reason
      const failure = error instanceof RuntimeError ? error : wrong(messageOf(error))
      const known = withoutSecretTexts(failure, secrets)
      if (!mayRepeat(known, idempotent) || attempt >= way.attempts) throw known
      const inMs = pause(attempt)
      const { code, message } = known
      yield { type: 'event', name: 'retry', value: { attempt: attempt + 1, inMs, code, message } }
      await systemClock.sleep(inMs, signal)
    } finally {
      signal.removeEventListener('abort', stop)
      client.abortRun() // also when nobody listens any more
    }
  }
}

async function* here(
  agent: AbstractAgent,
  input: RunAgentInput,
  hearing: Hearing,
  { signal }: LegRequest,
): AsyncGenerator<AgentEvent, void, undefined> {
  const own = agent.clone() as AbstractAgent // two runs must not meet
  own.threadId = input.threadId
  own.messages = input.messages
  own.state = input.state ?? {}
  try {
    yield* heard(own.run(input), hearing, signal)
  } catch (error) {
    if (signal.aborted) throw signal.reason
    const secrets = secretsOf(agent)
    if (error instanceof RuntimeError) throw withoutSecretTexts(error, secrets)
    const message = withoutTexts(messageOf(error), secrets)
    const cause = message === messageOf(error) ? { cause: error } : {}
    throw new RuntimeError('remote_failed', `The agent failed: ${message}`, cause)
  } finally {
    own.abortRun()
  }
}

/** The keys of an agent that is a client of a server, such as `HttpAgent`. */
function secretsOf(agent: AbstractAgent): readonly string[] {
  const { headers, url } = agent as { headers?: Record<string, string>; url?: string }
  return connectionSecrets(headers, url)
}

/** Reads to the end that the protocol has; what comes after it is not heard. */
async function* heard(
  source: Observed<BaseEvent>,
  hearing: Hearing,
  signal: AbortSignal,
  transport?: Transport,
): AsyncGenerator<AgentEvent, void, undefined> {
  const { values, room } = observe(source, signal)
  if (transport) transport.room = room
  let count = 0
  try {
    for await (const given of values) {
      const event = readEvent(given)
      if (event) yield* hearing.take(event)
      if (hearing.end) return
      // A remote that never waits must not starve the rest of the world.
      if (++count % 256 === 0) await new Promise((resolve) => setImmediate(resolve))
    }
  } catch (error) {
    if (transport?.failure !== undefined && !(error instanceof RuntimeError))
      throw transport.failure
    throw error
  }
  if (transport?.failure !== undefined) throw transport.failure
  const told = 'The remote agent stopped before it said that it was done.'
  throw new RuntimeError('remote_cut', told)
}

function inputFor(request: LegRequest, threadId: string, properties: object): RunAgentInput {
  const { ctx, effectId, tools, messages, answers } = request
  const legacy = answers.find(({ interrupt }) => interrupt.id.startsWith(legacyPrefix))
  const resume = answers.flatMap(({ interrupt: { id }, answer }) => {
    if (id.startsWith(legacyPrefix)) return []
    const payload = payloadOf(answer)
    const status = payload === undefined ? ('cancelled' as const) : ('resolved' as const)
    return [{ interruptId: id, status, ...(payload !== undefined && { payload }) }]
  })
  const command = legacy && {
    command: { resume: payloadOf(legacy.answer), interruptEvent: legacy.interrupt.input },
  }
  const state = ctx.state()
  return {
    threadId,
    runId: effectId,
    protocolVersion: '1.0',
    state: state ?? {},
    messages: toAgui(messages),
    tools: tools.map(({ name, description, parameters }) => ({ name, description, parameters })),
    context: (ctx.options.instructions ?? []).map((value) => ({
      description: 'Instructions',
      value,
    })),
    forwardedProps: { ...properties, ...command },
    ...(resume.length > 0 && { resume }),
  }
}

/** Runtimes that outlive their readers want to be told; others have lost theirs. */
async function stopThere(
  url: string,
  way: Reach,
  headers: Record<string, string>,
  { threadId, runId }: RunAgentInput,
): Promise<void> {
  const runs = /^(.*\/agent\/[^/]+)\/run$/.exec(url.replace(/[?#].*$/, ''))?.[1]
  if (runs === undefined) return
  const signal = AbortSignal.timeout(3_000)
  const init = { method: 'POST', headers: { ...headers, 'content-type': 'application/json' } }
  const to = `${runs}/stop/${encodeURIComponent(threadId)}`
  const told = way.fetch(to, { ...init, body: JSON.stringify({ runId }), signal })
  await told.then((response) => response.body?.cancel()).catch(() => {})
}

const messageOf = (error: unknown): string =>
  (error instanceof Error ? error.message : String(error)).slice(0, 300)
