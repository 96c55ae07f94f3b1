import { createHash, timingSafeEqual } from 'node:crypto'
import { Hono } from 'hono'
import { isLoopback } from './config.ts'
import { isRuntimeError, RuntimeError, toRuntimeError } from './core/errors.ts'
import type { Caller } from './core/runtime.ts'
import type { Log } from './core/worker.ts'
import { errorResponse, type Route, readCall } from './wires/http.ts'

export interface ServerOptions {
  routes: readonly Route[]
  /** Paths that answer without an identity: health, documentation. */
  open: readonly Route[]
  apiKeys: ReadonlyMap<string, Omit<Caller, 'wire'>>
  bodyLimit: number
  log: Log
}

/** `(Request) => Response`: who is asking, which route, and one place for what goes wrong. */
export function createServer(options: ServerOptions): {
  fetch: (request: Request) => Promise<Response>
} {
  const app = new Hono()
  const who = identify(options.apiKeys)
  const methods = new Map<string, string[]>()
  const routes = [
    ...options.open.map((one) => ({ one, guard: false })),
    ...options.routes.map((one) => ({ one, guard: true })),
  ]
  for (const { one, guard } of routes) {
    const path = one.path.replace(/\{(\w+)\}/g, ':$1')
    methods.set(path, [...(methods.get(path) ?? []), one.method.toUpperCase()])
    app.on(one.method.toUpperCase(), path, async (c) => {
      const request = c.req.raw
      const caller = guard ? who(request) : nobody
      const params = c.req.param()
      refuseHalfDecoded(params, request)
      const call = await readCall(one, request, params, options.bodyLimit)
      return await one.handle({ ...call, caller, request })
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
  app.onError((error, c) => {
    const known = toRuntimeError(error)
    if (known.code === 'internal' || known.code === 'thread_damaged') {
      options.log.error({ err: known.cause ?? known, path: c.req.path }, 'request failed')
    }
    return errorResponse(known)
  })
  return {
    fetch: async (request) => {
      try {
        if (options.apiKeys.size === 0) loopbackOnly(request)
        return await app.fetch(request)
      } catch (error) {
        return errorResponse(isRuntimeError(error) ? error : toRuntimeError(error))
      }
    },
  }
}

const nobody: Caller = { tenant: '', user: '', roles: [], wire: 'http' }

/** Hono leaves what it cannot decode as it is; we refuse it, so that one id has one spelling. */
function refuseHalfDecoded(params: Record<string, string>, request: Request): void {
  const written = new Set(new URL(request.url).pathname.split('/'))
  for (const [name, value] of Object.entries(params)) {
    if (!value.includes('%') || !written.has(value)) continue
    throw new RuntimeError('invalid_id', undefined, { field: `path.${name}` })
  }
}

/** Without auth, a web page elsewhere must not reach us through a name that points here. */
function loopbackOnly(request: Request): void {
  const { hostname } = new URL(request.url)
  const name = hostname.replace(/^\[(.*)\]$/, '$1')
  if (!isLoopback(name) && !name.endsWith('.localhost')) throw new RuntimeError('host_not_allowed')
}

function identify(apiKeys: ServerOptions['apiKeys']): (request: Request) => Caller {
  if (apiKeys.size === 0) {
    return () => ({ tenant: 'default', user: 'local', roles: ['user', 'operator'], wire: 'chats' })
  }
  const digest = (text: string) => createHash('sha256').update(text).digest()
  const known = [...apiKeys].map(([key, caller]) => ({ digest: digest(key), caller }))
  return (request) => {
    const bearer = /^Bearer (.+)$/i.exec(request.headers.get('authorization') ?? '')?.[1]
    const given = digest(bearer ?? request.headers.get('x-api-key') ?? '')
    const match = known.filter((one) => timingSafeEqual(one.digest, given))[0]
    if (!match) throw new RuntimeError('unauthenticated')
    return { ...match.caller, wire: 'chats' }
  }
}
