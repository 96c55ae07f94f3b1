import { setImmediate } from 'node:timers/promises'
import { z } from 'zod'
import { RuntimeError, toRuntimeError } from '../../core/errors.ts'
import type { Runtime } from '../../core/runtime.ts'
import type { Log } from '../../core/worker.ts'
import { lazily } from '../../lib/lazily.ts'
import { parseJson } from '../body.ts'
import { type Call, type Route, retryHeaders, route } from '../http.ts'
import type { Heartbeats } from '../sse.ts'
import { alive } from './alive.ts'
import { errorExtensions, failedStatus } from './failures.ts'
import { graphiqlPage } from './graphiql.ts'
import { type Asked, graphqlRuns } from './runs.ts'
import type { GenerateInput } from './shapes.ts'
import type { StopRule } from './stops.ts'

export interface GraphqlOptions {
  runtime: Runtime
  heartbeats: Heartbeats
  /** Where it is mounted; every path serves the same. */
  basePaths: readonly string[]
  stop: StopRule
  introspection: boolean
  graphiql: boolean
  log: Log
}

const anything = z.looseObject({})
/** More than this is checked by GraphQL itself. */
const operation = z.looseObject(
  { query: z.string(), variables: z.unknown().optional() },
  'must be one operation: {query, variables, operationName}',
)
type Operation = z.infer<typeof operation>

const mutation = 'generateCopilotResponse'
const clientVersion = 'x-copilotkit-runtime-client-gql-version'
const responses = {
  200: { description: 'The result, in parts where asked for', stream: 'multipart/mixed' },
}

/** CopilotKit's clients up to 1.10.6, and any GraphQL client. */
export function graphqlWire(options: GraphqlOptions): Route[] {
  const { runtime, heartbeats, log } = options
  const runs = graphqlRuns(runtime, options.stop, log)
  const direct = lazily(async () => {
    await loadGraphql()
    const { directCalls, directResponse } = await import('./direct.ts')
    await setImmediate()
    return { read: directCalls(), respond: directResponse }
  })
  const general = lazily(async () => {
    await loadGraphql()
    const { GraphQLError } = await import('graphql')
    const { graphqlExecutor } = await import('./executor.ts')
    await setImmediate()
    const tell = (error: unknown, path: readonly (string | number)[] | undefined) => {
      const known = noted(error, { path: path?.join('.') })
      return new GraphQLError(known.message, { extensions: errorExtensions(known) })
    }
    const generate: typeof runs.generate = async (...asked) =>
      alive(await runs.generate(...asked), heartbeats)
    const { introspection } = options
    const executor = graphqlExecutor({ ...runs, generate }, { introspection, tell })
    await executor.rehearse()
    return executor
  })
  const warmUp = async () => {
    await direct()
    await general()
  }

  /** Every failure is in the log with what was asked; what caused it is nowhere else. */
  function noted(error: unknown, about: object): RuntimeError {
    const known = toRuntimeError(error)
    const level = known.status >= 500 ? 'error' : 'info'
    log[level]({ ...about, code: known.code, err: known.cause ?? known }, 'graphql: refused')
    return known
  }

  async function post({ body, caller, request }: Call<unknown, unknown, Operation>) {
    const asked = { caller, request }
    const { read, respond } = await direct()
    const call = read(body, request.headers.get('accept') ?? '')
    if (!call) return await execute(body, asked)
    const about = contextOf(call.data, asked, runtime.clock.now)
    try {
      const generated = await runs.generate(call.data, call.properties, asked)
      return respond(generated, heartbeats, (error) => ({
        type: 'ResponseEnd',
        status: failedStatus(noted(error, about())),
      }))
    } catch (error) {
      return errorResult(noted(error, about()), 200, [mutation])
    }
  }

  async function execute(body: Operation | undefined, asked: Asked): Promise<Response> {
    const { execute } = await general()
    return await execute(asked.request, body, asked)
  }

  async function get({ caller, request }: Call<unknown, unknown, unknown>, endpoint: string) {
    const { searchParams } = new URL(request.url)
    if (wantsPage(request)) {
      if (!options.graphiql) throw new RuntimeError('not_found')
      const { html, policy } = await graphiqlPage(endpoint)
      const headers = {
        'content-type': 'text/html; charset=utf-8',
        'content-security-policy': policy,
      }
      return new Response(html, { headers })
    }
    for (const name of ['variables', 'extensions']) {
      const field = `query.${name}`
      parseJson(searchParams.get(name) ?? '{}', field, (cause) => {
        throw new RuntimeError('invalid_request', `${field}: must be JSON text`, { cause, field })
      })
    }
    return await execute(undefined, { caller, request })
  }

  const common = { query: anything, responses, wire: 'graphql', fail, warmUp }
  const one = { method: 'post' as const, summary: 'GraphQL for CopilotKit up to 1.10.6', ...common }
  return options.basePaths.flatMap((base) => [
    route({ ...one, path: base, body: operation, takes, handle: echoing(post) }),
    route({ ...one, path: `${base}/graphql`, body: operation, handle: echoing(post) }),
    route({
      ...common,
      method: 'get',
      path: `${base}/graphql`,
      summary: 'A page to try GraphQL on, or the result of ?query=',
      isPublic: wantsPage,
      handle: echoing((call: Call<unknown, unknown, unknown>) => get(call, `${base}/graphql`)),
    }),
  ])
}

/** Parts of `graphql`, which is one CommonJS tree: imported as a whole, it blocks the event loop for 40 ms. */
const graphqlParts = ['language', 'type', 'validation', 'execution', 'utilities']

const loadGraphql = lazily(async () => {
  for (const part of graphqlParts) {
    await import(`graphql/${part}/index.js`)
    await setImmediate()
  }
})

/** Whether the request is for GraphiQL, which is the same for everybody and shows no data. */
function wantsPage({ headers, url }: Request): boolean {
  const html = (headers.get('accept') ?? '').includes('text/html')
  return html && !new URL(url).searchParams.has('query')
}

/** What the log says of a request that failed. */
function contextOf(data: GenerateInput, { caller, request }: Asked, now: () => number) {
  const startTime = now()
  const { threadId, runId, agentSession } = data
  const { agentName: name, nodeName } = agentSession ?? {}
  const asked = { operation: mutation, method: request.method, url: new URL(request.url).pathname }
  return () => ({
    threadId,
    runId,
    user: caller.user,
    source: 'runtime',
    request: { ...asked, startTime },
    response: { latency: now() - startTime },
    ...(name !== undefined && { agent: { name, nodeName } }),
  })
}

/** The address is shared with AG-UI's envelope, which has a method and no query. */
function takes({ headers }: Request, body: unknown): boolean {
  if (headers.has(clientVersion) || Array.isArray(body)) return true
  return typeof (body as { query?: unknown } | null | undefined)?.query === 'string'
}

/** A client takes any other version than its own for a reason to complain. */
function echoing<C extends { request: Request }>(handle: (call: C) => Promise<Response>) {
  return async (call: C): Promise<Response> => withVersion(await handle(call), call.request)
}

function withVersion(response: Response, request: Request): Response {
  const version = request.headers.get(clientVersion)
  if (version) response.headers.set('x-copilotkit-runtime-version', version)
  return response
}

/** CopilotKit's client reads no body of a 4xx: it is told in a 200. Others get the status. */
function fail(error: RuntimeError, request: Request): Response {
  const status = request.headers.has(clientVersion) ? 200 : error.status
  return withVersion(errorResult(error, status), request)
}

function errorResult(error: RuntimeError, status: number, path?: string[]): Response {
  const { message } = error
  const told = { message, ...(path && { path }), extensions: errorExtensions(error) }
  const type = 'application/graphql-response+json; charset=utf-8'
  const headers = { 'content-type': type, ...retryHeaders(error) }
  return new Response(JSON.stringify({ errors: [told], data: null }), { status, headers })
}
