import { createHash, timingSafeEqual } from 'node:crypto'
import { Hono } from 'hono'
import { isLoopback } from './config.ts'
import { RuntimeError, toRuntimeError } from './core/errors.ts'
import type { Caller } from './core/runtime.ts'
import type { ThreadUse } from './core/thread-uses.ts'
import type { Log } from './core/worker.ts'
import { systemClock } from './lib/clock.ts'
import { isAllowedOrigin, refuseForeignPage } from './origins.ts'
import { readJson } from './wires/body.ts'
import { BodyMemory } from './wires/body-memory.ts'
import { errorResponse, type Route, readCall, withSafeHeaders } from './wires/http.ts'
import { Pacing } from './wires/pacing.ts'
import { onResponseEnd } from './wires/response-end.ts'

export interface ServerOptions {
  routes: readonly Route[]
  /** Paths that answer without an identity: health, documentation. */
  open: readonly Route[]
  apiKeys: ReadonlyMap<string, Omit<Caller, 'wire'>>
  bodyLimit: number
  /** Origins of pages that may call us, besides those of this machine; `*` for all, `none` for no others of this machine. */
  origins: ReadonlySet<string>
  log: Log
  /** Counts the threads that a request keeps in memory until its response has ended. */
  uses?: (owner: string) => ThreadUse
}

/** `(Request) => Response`: who is asking, which route, and one place for what goes wrong. */
export function createServer(options: ServerOptions): {
  fetch: (request: Request) => Promise<Response>
} {
  const app = new Hono()
  const who = identify(options.apiKeys)
  const methods = new Map<string, string[]>()
  const pacing = new Pacing(systemClock)
  const memory = new BodyMemory(options.bodyLimit)
  const usesOf = (request: Request, owner: string) => {
    const uses = options.uses?.(owner)
    return uses && onResponseEnd(request, uses.end) ? { uses } : {}
  }
  const routes: Mounted[] = [
    ...options.open.map((one) => ({ one, guard: false })),
    ...options.routes.map((one) => ({ one, guard: true })),
  ]
  /** What may be told of an error; what may not is in the log. */
  const told = (error: unknown, path: string, request: Request): RuntimeError => {
    const known = toRuntimeError(error)
    const left = known.code === 'internal' && request.signal.aborted // in the middle of its body, mostly
    if (!left && (known.code === 'internal' || known.code === 'thread_damaged')) {
      options.log.error({ err: known.cause ?? known, path }, 'request failed')
    }
    return known
  }
  for (const list of byAddress(routes)) {
    const path = list[0]!.one.path.replace(/\{(\w+)\}/g, ':$1')
    const method = list[0]!.one.method.toUpperCase()
    methods.set(path, [...(methods.get(path) ?? []), method])
    app.on(method, path, async (c) => {
      const request = c.req.raw
      const pick = (body?: unknown) =>
        list.find(({ one }) => list.length === 1 || one.takes?.(request, body)) ?? list[0]!
      let { one, guard } = pick()
      try {
        const caller = guard ? who(request) : nobody
        one.admit?.(request)
        const params = c.req.param()
        refuseHalfDecoded(params, request)
        const shared = list.length > 1
        const key = JSON.stringify([caller.tenant, caller.user])
        if (guard) pacing.seen(key)
        const limits = {
          bytes: options.bodyLimit,
          pace: pacing.body(key, request.signal),
          memory: memory.body(key),
        }
        const read = shared ? { body: await readJson(request, limits) } : undefined
        if (read) ({ one } = pick(read.body))
        const call = await readCall(one, request, params, limits, read)
        const by = { ...caller, wire: one.wire ?? 'http', ...usesOf(request, key) }
        const response = await one.handle({ ...call, caller: by, request })
        // Nobody would read it, nor tell it that.
        if (request.method === 'HEAD' || request.signal.aborted) await response.body?.cancel()
        return response
      } catch (error) {
        return (one.fail ?? errorResponse)(told(error, c.req.path, request), request)
      }
    })
  }
  for (const [path, allowed] of methods) {
    app.all(path, () => {
      const allow = allowed.join(', ')
      const response = errorResponse(
        new RuntimeError('method_not_allowed', `This address takes ${allow}.`, {
          data: { allowed },
        }),
      )
      response.headers.set('allow', allow)
      return response
    })
  }
  app.notFound(() => errorResponse(new RuntimeError('not_found')))
  app.onError((error, c) => errorResponse(told(error, c.req.path, c.req.raw)))
  return {
    fetch: async (request) => {
      try {
        if (options.apiKeys.size === 0) loopbackOnly(request)
        refuseForeignPage(request, options.origins)
        const allowed = cors(request, options.origins)
        // With an origin it is a browser that asks first; without, an address is asked what it takes.
        if (request.method === 'OPTIONS' && request.headers.has('origin'))
          return withSafeHeaders(new Response(null, { status: 204, headers: allowed }))
        const response = withSafeHeaders(await app.fetch(request))
        for (const [name, value] of Object.entries(allowed)) response.headers.set(name, value)
        return response
      } catch (error) {
        return withSafeHeaders(errorResponse(toRuntimeError(error)))
      }
    },
  }
}

interface Mounted {
  one: Route
  /** Whoever asks must say who it is. */
  guard: boolean
}

/** Several wires may share an address: what is sent there tells which is meant. */
function byAddress(routes: readonly Mounted[]): Mounted[][] {
  const lists = new Map<string, Mounted[]>()
  for (const mounted of routes) {
    const address = `${mounted.one.method} ${mounted.one.path}`
    lists.set(address, [...(lists.get(address) ?? []), mounted])
  }
  return [...lists.values()]
}

/** Echoes what is asked for: `*` would not cover credentials nor the Authorization header. */
function cors(request: Request, origins: ReadonlySet<string>): Record<string, string> {
  const origin = request.headers.get('origin')
  if (origin === null) return {}
  if (!isAllowedOrigin(origin, origins)) return { vary: 'Origin' }
  const allowed: Record<string, string> = {
    'access-control-allow-origin': origin,
    'access-control-allow-credentials': 'true',
    vary: 'Origin',
  }
  if (request.method !== 'OPTIONS') return allowed
  const method = request.headers.get('access-control-request-method')
  const headers = request.headers.get('access-control-request-headers')
  return {
    ...allowed,
    vary: 'Origin, Access-Control-Request-Headers',
    ...(method && { 'access-control-allow-methods': method }),
    ...(headers && { 'access-control-allow-headers': headers }),
    'access-control-max-age': '600',
  }
}

const nobody: Caller = { tenant: '', user: '', roles: [], wire: 'http' }

/** Hono leaves what it cannot decode as it is; we refuse it, so that one id has one spelling. */
function refuseHalfDecoded(params: Record<string, string>, request: Request): void {
  const suspects = Object.entries(params).filter(([, value]) => value.includes('%'))
  if (suspects.length === 0) return
  const written = new Set(new URL(request.url).pathname.split('/'))
  for (const [name, value] of suspects)
    if (written.has(value))
      throw new RuntimeError('invalid_id', undefined, { field: `path.${name}` })
}

/** Without auth, a web page elsewhere must not reach us through a name that points here. */
function loopbackOnly(request: Request): void {
  const { hostname } = new URL(request.url)
  const name = hostname.replace(/^\[(.*)\]$/, '$1')
  if (!isLoopback(name) && !name.endsWith('.localhost')) throw new RuntimeError('host_not_allowed')
}

/** The caller of every request to a server without keys. */
export const localUser = { tenant: 'default', user: 'local' } as const

function identify(apiKeys: ServerOptions['apiKeys']): (request: Request) => Caller {
  if (apiKeys.size === 0) {
    return () => ({ ...localUser, roles: ['user', 'operator'], wire: '' })
  }
  const digest = (text: string) => createHash('sha256').update(text).digest()
  const known = [...apiKeys].map(([key, caller]) => ({ digest: digest(key), caller }))
  return (request) => {
    const bearer = /^Bearer (.+)$/i.exec(request.headers.get('authorization') ?? '')?.[1]
    const given = digest(bearer ?? request.headers.get('x-api-key') ?? '')
    const match = known.filter((one) => timingSafeEqual(one.digest, given))[0]
    if (!match) throw new RuntimeError('unauthenticated')
    return { ...match.caller, wire: '' }
  }
}
