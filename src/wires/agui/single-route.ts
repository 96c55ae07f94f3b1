import { z } from 'zod'
import type { Caller } from '../../core/runtime.ts'
import { invalid } from '../body.ts'
import { json, type Route, readCall, route } from '../http.ts'
import { info } from './info.ts'
import type { AguiOptions } from './wire.ts'

/** Characters of a method, of an id and of a path: as many as the head of a request may have. */
const maxLength = 8_000

const envelope = z.object({
  method: z.string().max(maxLength),
  params: z.record(z.string(), z.unknown()).nullish(),
  body: z.unknown().optional(),
})

interface Passed {
  method: string
  path: string
  body: unknown
}

/** `{method, params, body}` posted to the base address itself: the answers of the other routes. */
export function singleRoute(routes: readonly Route[], options: AguiOptions): Route {
  const { runtime, version, bodyLimit } = options
  const find = matcher(routes)
  const pass = async (
    { method, path, body }: Passed,
    call: { caller: Caller; request: Request },
  ): Promise<Response> => {
    const url = new URL(path, 'http://localhost')
    const { one, params } = find(method, url.pathname)
    const request = new Request(url, { method: method.toUpperCase() })
    const given = body === undefined ? undefined : { body } // read and checked with the envelope
    const read = await readCall(one, request, params, { bytes: bodyLimit }, given)
    return await one.handle({ ...read, ...call })
  }
  return route({
    method: 'post',
    path: '',
    summary: 'Every route behind one address: {method, params, body}',
    query: z.looseObject({}),
    body: envelope,
    responses: { 200: { description: 'As the route that is named', stream: 'text/event-stream' } },
    async handle({ body: { method, params, body }, caller, request }) {
      if (method === 'info') return json(info(runtime, version, true))
      if (method === 'transcribe') return noTranscription()
      return await pass(passedOn(method, params ?? {}, body), { caller, request })
    },
  })
}

function passedOn(method: string, params: Record<string, unknown>, body: unknown): Passed {
  const text = (name: string): string => {
    const value = params[name] ?? ''
    const field = `params.${name}`
    if (typeof value !== 'string') throw invalid(field, 'must be text')
    if (value === '') throw invalid(field, 'is missing')
    if (value.length > maxLength) throw invalid(field, 'is too long')
    return value
  }
  const named = (name: string) => encodeURIComponent(text(name))
  if (/^agent\/(run|connect|suggest)$/.test(method)) {
    if (body === undefined || body === null) throw invalid('body', 'is missing')
    const path = `/agent/${named('agentId')}/${method.slice('agent/'.length)}`
    return { method: 'post', path, body }
  }
  if (method === 'agent/stop') {
    const path = `/agent/${named('agentId')}/stop/${named('threadId')}`
    return { method: 'post', path, body: body ?? {} }
  }
  if (method === 'resource/request') {
    // As it is read: dots in it lead elsewhere.
    const base = 'http://localhost'
    const given = text('path')
    const { pathname = '', search = '' } = URL.canParse(given, base) ? new URL(given, base) : {}
    const path = pathname + search
    if (!/^\/threads(\/|$)/.test(pathname)) throw invalid('params.path', 'must begin with /threads')
    const httpMethod = params.httpMethod == null ? 'get' : text('httpMethod')
    return { method: httpMethod.toLowerCase(), path, body }
  }
  throw invalid('method', `${method} is not known`)
}

/** Finds the route for a path, with its parameters. */
function matcher(routes: readonly Route[]) {
  const patterns = routes.map((one) => {
    const names: string[] = []
    const pattern = one.path.replace(/\{(\w+)\}/g, (_, name: string) => {
      names.push(name)
      return '([^/]+)'
    })
    return { one, names, pattern: new RegExp(`^${pattern}$`) }
  })
  return (method: string, path: string): { one: Route; params: Record<string, string> } => {
    for (const { one, names, pattern } of patterns) {
      const match = one.method === method ? pattern.exec(path) : null
      if (!match) continue
      return {
        one,
        params: Object.fromEntries(names.map((name, i) => [name, decode(match[i + 1]!)])),
      }
    }
    throw invalid('params.path', 'there is nothing at this address')
  }
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw invalid('params.path', 'is not encoded well')
  }
}

export const noTranscription = (): Response => {
  const message = 'No transcription service is configured.'
  return json({ error: 'service_not_configured', message, retryable: false }, 503)
}
