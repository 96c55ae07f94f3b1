import { requestHeaders, responseHeaders } from './headers.ts'
import { targetOf } from './target.ts'

export const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const

export interface ProxyOptions {
  /** The runtime; only its origin is used, and nothing of a request can change it. */
  upstream: string
  /** Where the proxy is mounted. */
  mount: string
  /** The public key of the runtime, where it asks for one. */
  publicKey?: string | undefined
  /** Whether requests with this `Host` header are answered. */
  isHost(host: string): boolean
}

/**
 * Passes a request on to the runtime and its answer back, as bytes, in both directions at the pace of
 * whoever reads. Who leaves is gone on both sides.
 */
export async function forward(request: Request, options: ProxyOptions): Promise<Response> {
  const refusal = refuse(request, options)
  if (refusal) return refusal
  const url = new URL(request.url)
  const target = targetOf(url.pathname.slice(options.mount.length))
  if ('refused' in target) {
    const status = target.refused === 'unknown' ? 404 : 400
    const details = `${url.pathname} is ${target.refused === 'unknown' ? 'not served here' : 'not a path'}.`
    return error(status, { error: status === 404 ? 'Not found' : 'Invalid path', details })
  }
  try {
    const address = new URL(options.upstream)
    address.pathname = target.path
    address.search = url.search
    const init: RequestInit & { duplex: 'half' } = {
      method: request.method,
      headers: requestHeaders(request.headers, options.publicKey),
      body: request.body,
      duplex: 'half',
      redirect: 'manual',
      cache: 'no-store',
      signal: request.signal,
    }
    return await passed(await fetch(address, init))
  } catch (problem) {
    return failure(problem, options.upstream, request.signal)
  }
}

async function passed(answer: Response): Promise<Response> {
  const { status, headers, body } = answer
  const init = { status, headers: responseHeaders(headers) }
  const isJson = (headers.get('content-type') ?? '').includes('json')
  if (status < 400 || isJson || body === null) return new Response(body, init)
  // A page of somebody in between, not an answer of the runtime.
  const details = (await answer.text()).slice(0, 2_000)
  return error(status, { error: `The server answered ${status}`, details })
}

function refuse({ method, headers }: Request, { isHost }: ProxyOptions): Response | undefined {
  if (!(methods as readonly string[]).includes(method)) {
    const response = error(405, { error: 'Method not allowed', allowed: methods })
    response.headers.set('allow', methods.join(', '))
    return response
  }
  const host = headers.get('host') ?? ''
  if (!isHost(host)) {
    const details = `This page does not answer to the name ${host}. Add it to WEB_ALLOWED_HOSTS.`
    return error(403, { error: 'Host not allowed', details })
  }
  // Pages of others may not use ours to reach the runtime.
  const origin = headers.get('origin')
  const safe = method === 'GET' || method === 'HEAD'
  const foreign = !safe && headers.get('sec-fetch-site')?.toLowerCase() === 'cross-site'
  if (origin === null ? !foreign : hostOf(origin) === host) return undefined
  const details = `${origin ?? 'A page of another site'} may not call this page.`
  return error(403, { error: 'Origin not allowed', details })
}

const hostOf = (origin: string) => (URL.canParse(origin) ? new URL(origin).host : '')

/** No answer: nobody is there, or something went wrong here. */
function failure(problem: unknown, upstream: string, gone: AbortSignal): Response {
  if (gone.aborted) return new Response(null, { status: 499 }) // nobody is left to read it
  const cause = (problem as { cause?: { code?: string; message?: string } }).cause
  const code = cause?.code ?? ''
  if (unreachable.test(code)) {
    const { origin } = new URL(upstream)
    const reason = `The Handrail server at ${origin} cannot be reached (${code}).`
    return error(502, { error: 'Server unreachable', reason, details: reason })
  }
  const message = cause?.message ?? (problem instanceof Error ? problem.message : String(problem))
  return error(500, { error: 'Proxy request failed', message })
}

const unreachable =
  /^(ECONN|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|EPIPE|UND_ERR_(SOCKET|CONNECT_TIMEOUT|HEADERS_TIMEOUT))/

const error = (status: number, body: object) => Response.json(body, { status })
