import { z } from 'zod'
import type { Agent, AgentEvent } from '../../../core/agent.ts'
import { isRuntimeError, RuntimeError, withoutSecretTexts } from '../../../core/errors.ts'
import { isStop, LegStop } from '../../../core/leg.ts'
import { OutcomeUnknown, type Tool, type ToolUse } from '../../../core/tool.ts'
import { digestOf } from '../../../lib/canonical.ts'
import { systemClock } from '../../../lib/clock.ts'
import { type ActionParameter, actionTool } from '../../../tools/actions.ts'
import { payloadOf } from '../answers.ts'
import { refusalOf } from '../egress.ts'
import { jsonLines } from '../lines.ts'
import { accepted, mayRepeat, pause, type ReachOptions, type RunAbout, reach } from '../reach.ts'
import {
  type LegEnd,
  type LegRequest,
  type RemoteAgentOptions,
  remoteAgent,
  uuidOf,
} from '../remote-agent.ts'
import type { Found, Remote } from '../remotes.ts'
import { wrong } from '../scribe.ts'
import { Hearing } from './hearing.ts'
import { toCopilotKit } from './messages.ts'

export type CopilotKitEndpointOptions = Omit<ReachOptions, 'headers'> &
  Pick<RemoteAgentOptions, 'idempotent' | 'tools' | 'maxSteps'> & {
    url: string
    /** Headers for a request, as CopilotKit's runtime asks for them: by themselves, or as `headers`. */
    onBeforeRequest?: (ctx: RunAbout & { ctx: RunAbout }) => Headed | Promise<Headed>
  }
type Headed = Record<string, string> | { headers?: Record<string, string> }

const infoSchema = z.looseObject({
  actions: z
    .array(
      z.looseObject({
        name: z.string(),
        description: z.string().nullish(),
        parameters: z.array(z.looseObject({ name: z.string() })).nullish(),
      }),
    )
    .nullish(),
  agents: z
    .array(z.looseObject({ name: z.string().min(1), description: z.string().nullish() }))
    .nullish(),
})

/** A remote endpoint of CopilotKit's Python SDK: its agents are ours, and its actions tools of ours. */
export function copilotKitEndpoint(options: CopilotKitEndpointOptions): Remote {
  const { onBeforeRequest, ...rest } = options
  const url = options.url.replace(/\/+$/, '')
  const way = reach(url, {
    ...rest,
    headers: async (about) => headersOf(await onBeforeRequest?.({ ...about, ctx: about })),
  })
  const post = async (
    path: string,
    body: object,
    signal: AbortSignal,
    { ctx, more, own }: PostOptions = {},
  ) => {
    const headers = own ?? (await way.headers(ctx))
    const init = { method: 'POST', body: JSON.stringify(body), signal }
    await ctx?.hold()
    const json = { 'content-type': 'application/json', accept: 'application/json' }
    const sent = { ...init, headers: { ...headers, ...more, ...json } }
    return await accepted(await way.fetch(`${url}/${path}`, sent), way.secrets(headers, ctx))
  }
  const made = new Map<string, Agent | Tool>()
  /** The same description gives the same thing, so that what was remembered of it stands. */
  const same = <T extends Agent | Tool>(about: object, make: () => T): T => {
    const key = digestOf(about)
    const one = (made.get(key) as T | undefined) ?? make()
    made.set(key, one)
    return one
  }
  const { origin, pathname } = new URL(url)
  return {
    name: origin + pathname, // for the log: an address may hold a key
    async find(signal): Promise<Found> {
      const response = await post('info', { properties: {} }, signal).catch((error: unknown) => {
        throw refusalOf(error) ?? error // it starts no work
      })
      const { agents, actions } = readInfo(await response.json().catch(() => undefined))
      return {
        agents: (agents ?? []).map((one) =>
          same({ agent: one.name, about: one.description }, () => {
            const description = one.description ?? undefined
            const own = {
              ...rest,
              name: one.name,
              ...(description !== undefined && { description }),
            }
            const work = (request: LegRequest) => agentLeg(one.name, post, request, way, rest)
            return remoteAgent(own, {
              timeout: way.total,
              work,
              async look({ effectId }, place, signal) {
                const threadId = String(place?.threadId ?? uuidOf(effectId))
                return { evidence: await stateOf(one.name, threadId, post, signal) }
              },
            })
          }),
        ),
        tools: (actions ?? []).map((one) =>
          same({ action: one }, () => tool(one, post, way.total)),
        ),
      }
    },
  }
}

type Post = (
  path: string,
  body: object,
  signal: AbortSignal,
  options?: PostOptions,
) => Promise<Response>

interface PostOptions {
  ctx?: LegRequest['ctx']
  more?: Record<string, string>
  /** The headers of the operator and the client, if the caller has made them already. */
  own?: Record<string, string>
}

async function* agentLeg(
  name: string,
  post: Post,
  request: LegRequest,
  way: ReturnType<typeof reach>,
  { idempotent = false }: Pick<RemoteAgentOptions, 'idempotent'>,
): AsyncGenerator<AgentEvent, LegEnd, undefined> {
  const { ctx, signal, effectId, place, messages, tools, answers } = request
  const threadId = String(place?.threadId ?? uuidOf(effectId))
  const hearing = new Hearing(name, ctx)
  const body = {
    name,
    threadId,
    // Where it goes on, when it stopped in the middle; a new message begins anew.
    ...(typeof place?.node === 'string' && { nodeName: place.node }),
    state: ctx.state() ?? {},
    messages: toCopilotKit(messages),
    actions: tools,
    properties: way.properties(ctx),
    metaEvents: answers.map(({ interrupt, answer }) => ({
      type: 'MetaEvent',
      name: 'LangGraphInterruptEvent',
      value: interrupt.input,
      response: textOf(payloadOf(answer) ?? { approved: false }),
    })),
  }
  let secrets: readonly string[] = []
  try {
    const more = { 'idempotency-key': effectId }
    const response = yield* begun(way.attempts, idempotent, signal, async () => {
      const own = await way.headers(ctx)
      secrets = way.secrets(own, ctx)
      return await post('agents/execute', body, signal, { ctx, more, own })
    })
    let count = 0
    for await (const line of jsonLines(response)) {
      yield* hearing.take(line)
      // A remote that never waits must not starve the rest of the world.
      if (++count % 256 === 0) await new Promise((resolve) => setImmediate(resolve))
    }
    signal.throwIfAborted()
    yield* hearing.finish()
  } catch (error) {
    const cancelled = ctx.signal.aborted && isStop(ctx.signal.reason, 'cancelled')
    yield* cancelled ? hearing.scribe.stop() : hearing.scribe.cut()
    if (signal.aborted) throw signal.reason
    if (error instanceof LegStop) throw error
    const failure = error instanceof RuntimeError ? error : wrong(String(error).slice(0, 300))
    throw withoutSecretTexts(failure, secrets)
  }
  const node = hearing.node === '__end__' ? undefined : hearing.node
  return { interrupts: hearing.interrupts, place: { threadId, ...(node && { node }) } }
}

/** Sends the request again while the work did not start, or is idempotent. */
async function* begun(
  attempts: number,
  idempotent: boolean,
  signal: AbortSignal,
  begin: () => Promise<Response>,
): AsyncGenerator<AgentEvent, Response, undefined> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await begin()
    } catch (error) {
      if (signal.aborted || !mayRepeat(error, idempotent) || attempt >= attempts) throw error
      const inMs = pause(attempt)
      const { code, message } = error
      yield { type: 'event', name: 'retry', value: { attempt: attempt + 1, inMs, code, message } }
      await systemClock.sleep(inMs, signal)
    }
  }
}

/** What it knows of a thread, for the person who is asked what became of it. */
async function stateOf(name: string, threadId: string, post: Post, signal: AbortSignal) {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(5_000)])
  try {
    const response = await post('agents/state', { name, threadId, properties: {} }, limit)
    const { threadExists, state, messages } = (await response.json()) as Record<string, unknown>
    const last = Array.isArray(messages) ? messages.slice(-3) : []
    return JSON.stringify({ threadExists, state, messages: last }).slice(0, 10_000)
  } catch {
    return undefined // it is away, or does not tell
  }
}

interface ActionInfo {
  name: string
  description?: string | null | undefined
  parameters?: readonly { name: string }[] | null | undefined
}

/** An action as a tool of ours: by the policy and the ledger, like any other. */
function tool({ name, description, parameters }: ActionInfo, post: Post, total: number): Tool {
  const given = {
    name,
    description: description ?? '',
    parameters: (parameters ?? []) as ActionParameter[],
  }
  return {
    ...actionTool({ ...given, handler: () => undefined }),
    timeout: Math.min(total, 120_000),
    async run(input: unknown, { signal, effectId }: ToolUse) {
      const more = { 'idempotency-key': effectId }
      const body = { name, arguments: input, properties: {} }
      try {
        const response = await post('actions/execute', body, signal, { more })
        const { result } = (await response.json()) as { result?: unknown }
        return result ?? 'Done.'
      } catch (error) {
        if (error instanceof RuntimeError && !isUnknown(error)) throw error
        // It was sent, and nobody confirmed it: it may have happened.
        const lost = 'The connection to the endpoint was lost during the call.'
        const told = isRuntimeError(error, 'remote_outcome_unknown') ? error.message : lost
        throw new OutcomeUnknown(told, false)
      }
    },
  }
}

const isUnknown = ({ code }: RuntimeError): boolean =>
  code === 'remote_cut' || code === 'remote_timeout' || code === 'remote_outcome_unknown'

function readInfo(given: unknown): z.output<typeof infoSchema> {
  const read = infoSchema.safeParse(given)
  if (read.success) return read.data
  const { path, message } = read.error.issues[0]!
  throw wrong(`its list of agents: ${path.join('.')}: ${message}`)
}

function headersOf(given: Headed | undefined): Record<string, string> {
  if (!given) return {}
  const { headers } = given as { headers?: Record<string, string> }
  return typeof headers === 'object' ? headers : (given as Record<string, string>)
}

const textOf = (value: unknown): string =>
  typeof value === 'string' ? value : JSON.stringify(value)
