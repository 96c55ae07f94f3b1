import { z } from 'zod'
import { RuntimeError } from '../../core/errors.ts'
import type { Caller, Runtime } from '../../core/runtime.ts'
import { json, type Route, readCall, route } from '../http.ts'
import type { Heartbeats } from '../sse.ts'
import { aguiRuns } from './runs.ts'
import { agentParams, runInput, stopBody, stopParams } from './shapes.ts'
import { threadRoutes } from './threads.ts'

export interface AguiOptions {
  runtime: Runtime
  heartbeats: Heartbeats
  /** Where it is mounted; every path serves the same. */
  basePaths: readonly string[]
  whenBusy: 'reject' | 'queue'
  version: string
  bodyLimit: number
}

const anything = z.looseObject({})
const responses = { 200: { description: 'AG-UI events', stream: 'text/event-stream' } }
const answers = { 200: { description: 'JSON' } }

/** AG-UI and current CopilotKit clients: their routes, and the same behind one address. */
export function aguiWire(options: AguiOptions): Route[] {
  const { runtime, basePaths, version } = options
  const runs = aguiRuns(options)

  const routes: Route[] = [
    route({
      method: 'get',
      path: '/info',
      summary: 'What this runtime offers to CopilotKit clients',
      query: anything,
      responses: answers,
      handle: async () => json(info(runtime, version, false)),
    }),
    route({
      method: 'post',
      path: '/agent/{agentId}/run',
      summary: 'Say something to an agent, answer it, or join what runs',
      params: agentParams,
      query: anything,
      body: runInput,
      responses,
      handle: async ({ params, body, caller }) => await runs.run(caller, params.agentId, body),
    }),
    route({
      method: 'post',
      path: '/agent/{agentId}/connect',
      summary: 'The thread as it is, then what happens live',
      params: agentParams,
      query: anything,
      body: runInput,
      responses,
      handle: async ({ params, body, caller }) => await runs.connect(caller, params.agentId, body),
    }),
    route({
      method: 'post',
      path: '/agent/{agentId}/stop/{threadId}',
      summary: 'Stop what runs on a thread',
      params: stopParams,
      query: anything,
      body: stopBody,
      bodyOptional: true,
      responses: answers,
      handle: async ({ params, caller }) =>
        await runs.stop(caller, params.agentId, params.threadId),
    }),
    route({
      method: 'post',
      path: '/agent/{agentId}/suggest',
      summary: 'One model call that leaves no trace',
      params: agentParams,
      query: anything,
      body: runInput,
      responses,
      handle: async ({ params, body }) => await runs.suggest(params.agentId, body),
    }),
    ...threadRoutes(runtime),
  ]
  const single = singleRoute(routes, options)
  return basePaths.flatMap((base) =>
    [...routes, single].map((one) => ({ ...one, path: base + one.path, wire: 'agui', fail })),
  )
}

function info(runtime: Runtime, version: string, single: boolean) {
  const agents: Record<string, object> = {}
  for (const { agent, aliases } of runtime.agents()) {
    for (const name of [agent.name, ...aliases]) {
      agents[name] = {
        name,
        description: agent.description ?? '',
        className: 'Handrail',
        capabilities: {
          identity: { name: agent.name },
          transport: { streaming: true },
          humanInTheLoop: { supported: true, interrupts: true },
        },
      }
    }
  }
  const threadEndpoints = { list: true, inspect: true, mutations: true, realtimeMetadata: false }
  return {
    version,
    mode: 'sse',
    agents,
    audioFileTranscriptionEnabled: false,
    threadEndpoints,
    suggestions: true,
    a2uiEnabled: false,
    openGenerativeUIEnabled: false,
    telemetryDisabled: true,
    ...(single && { singleRoute: { resourceOperations: true, threadEndpoints } }),
  }
}

const envelope = z.looseObject({
  method: z.string(),
  params: z.record(z.string(), z.unknown()).optional(),
  body: z.unknown(),
})

/** `{method, params, body}` posted to the base address itself: the same answers. */
function singleRoute(
  routes: readonly Route[],
  { runtime, version, bodyLimit }: AguiOptions,
): Route {
  const find = (method: string, path: string) => {
    for (const one of routes) {
      if (one.method !== method) continue
      const names: string[] = []
      const pattern = one.path.replace(/\{(\w+)\}/g, (_, name: string) => {
        names.push(name)
        return '([^/]+)'
      })
      const match = new RegExp(`^${pattern}$`).exec(path)
      if (!match) continue
      const params = Object.fromEntries(
        names.map((name, i) => [name, decodeURIComponent(match[i + 1]!)]),
      )
      return { one, params }
    }
    throw invalid('method: there is no such method')
  }
  const pass = async (
    method: string,
    path: string,
    body: unknown,
    call: { caller: Caller; request: Request },
  ) => {
    const url = new URL(path, 'http://localhost')
    const { one, params } = find(method, url.pathname)
    const init = { method: method.toUpperCase(), headers: { 'content-type': 'application/json' } }
    const hasBody = method !== 'get' && body !== undefined
    const inner = new Request(url, { ...init, ...(hasBody && { body: JSON.stringify(body) }) })
    const read = await readCall(one, inner, params, bodyLimit)
    return await one.handle({ ...read, ...call })
  }
  return route({
    method: 'post',
    path: '',
    summary: 'Every route behind one address: {method, params, body}',
    query: anything,
    body: envelope,
    responses,
    async handle({ body: { method, params = {}, body }, caller, request }) {
      const text = (name: string) => {
        const value = params[name]
        if (typeof value !== 'string' || value === '') throw invalid(`params.${name}: is missing`)
        return encodeURIComponent(value)
      }
      const needed = () => {
        if (body === undefined || body === null) throw invalid('body: is missing')
        return body
      }
      const call = { caller, request }
      if (method === 'info') return json(info(runtime, version, true))
      const match = /^agent\/(run|connect|suggest)$/.exec(method)
      if (match) return await pass('post', `/agent/${text('agentId')}/${match[1]}`, needed(), call)
      if (method === 'agent/stop') {
        return await pass(
          'post',
          `/agent/${text('agentId')}/stop/${text('threadId')}`,
          body ?? {},
          call,
        )
      }
      if (method === 'resource/request') {
        const path = params.path
        const verb = String(params.httpMethod ?? 'GET').toLowerCase()
        if (typeof path !== 'string' || !/^\/threads([/?]|$)/.test(path)) {
          throw invalid('params.path: must begin with /threads')
        }
        return await pass(verb, path, body, call)
      }
      if (method === 'transcribe') {
        const message = 'No transcription service is configured.'
        return json({ error: 'service_not_configured', message, retryable: false }, 503)
      }
      throw invalid(`method: ${method} is not known`)
    },
  })
}

const invalid = (message: string) => new RuntimeError('invalid_request', message)

/** CopilotKit's form of errors: a word and a sentence. */
function fail(error: RuntimeError): Response {
  const { code, message, field, data } = error
  const names: Record<string, string> = {
    agent_not_found: 'Agent not found',
    invalid_request: 'Invalid request body',
    invalid_json: 'Invalid request body',
  }
  const headers: Record<string, string> = error.status === 503 ? { 'retry-after': '1' } : {}
  const more = { code, ...(field !== undefined && { field }), ...data }
  return json(
    { error: names[code] ?? code, message, details: message, ...more },
    error.status,
    headers,
  )
}
