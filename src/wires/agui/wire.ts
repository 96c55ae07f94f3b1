import { z } from 'zod'
import type { RuntimeError } from '../../core/errors.ts'
import type { Runtime } from '../../core/runtime.ts'
import { json, type Route, retryHeaders, route } from '../http.ts'
import type { Heartbeats } from '../sse.ts'
import { info } from './info.ts'
import { aguiRuns } from './runs.ts'
import { agentParams, runInput, stopBody, stopParams } from './shapes.ts'
import { noTranscription, singleRoute } from './single-route.ts'
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
      headers: { 'Idempotency-Key': 'The same key again starts no second run' },
      responses,
      handle: async ({ params, body, caller, request }) =>
        await runs.run(caller, params.agentId, body, request),
    }),
    route({
      method: 'post',
      path: '/agent/{agentId}/connect',
      summary: 'The thread as it is, then what happens live',
      params: agentParams,
      query: anything,
      body: runInput,
      responses,
      handle: async ({ params, body, caller, request }) =>
        await runs.connect(caller, params.agentId, body, request),
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
      handle: async ({ params, body, caller }) =>
        await runs.stop(caller, params.agentId, params.threadId, body.runId),
    }),
    route({
      method: 'post',
      path: '/agent/{agentId}/suggest',
      summary: 'One model call that leaves no trace',
      params: agentParams,
      query: anything,
      body: runInput,
      responses,
      handle: async ({ params, body, caller, request }) =>
        await runs.suggest(caller, params.agentId, body, request),
    }),
    route({
      method: 'post',
      path: '/transcribe',
      summary: 'Speech to text; not offered, as /info says',
      query: anything,
      responses: answers,
      handle: async () => noTranscription(),
    }),
    ...threadRoutes(runtime, options.heartbeats),
  ]
  const single = singleRoute(routes, options)
  return basePaths.flatMap((base) =>
    [...routes, single].map((one) => ({ ...one, path: base + one.path, wire: 'agui', fail })),
  )
}

/** CopilotKit's form of errors: a word and a sentence. */
function fail(error: RuntimeError): Response {
  const { code, message, field, data } = error
  const names: Record<string, string> = {
    agent_not_found: 'Agent not found',
    invalid_request: 'Invalid request body',
    invalid_json: 'Invalid request body',
  }
  const more = { code, ...(field !== undefined && { field }), ...data }
  return json(
    { error: names[code] ?? code, message, details: message, ...more },
    error.status,
    retryHeaders(error),
  )
}
