import { isLoopback } from './config.ts'
import { RuntimeError } from './core/errors.ts'
import { isSafeMethod } from './wires/http.ts'

/** In the list of origins: pages on other ports of this machine are not allowed either. */
export const noLocalPages = 'none'

/**
 * Refuses a request that a browser sends for a page of another site and that could change state. Browsers add
 * `Origin` to every such request, and no page can change it or `Sec-Fetch-Site`. Requests of other programs have neither header.
 * Throws `origin_not_allowed`.
 */
export function refuseForeignPage(request: Request, origins: ReadonlySet<string>): void {
  if (isSafeMethod(request.method)) return
  const origin = request.headers.get('origin')
  if (origin === null) {
    if (request.headers.get('sec-fetch-site')?.toLowerCase() !== 'cross-site') return
    throw new RuntimeError('origin_not_allowed')
  }
  if (isSameOrigin(request, origin) || isAllowedOrigin(origin, origins)) return
  if (origin === '') throw new RuntimeError('origin_not_allowed')
  const shown = origin.slice(0, maxShownOrigin)
  const problem = `Pages of ${shown} may not change anything here. To allow them, add ${shown} to HANDRAIL_CORS_ORIGINS.`
  throw new RuntimeError('origin_not_allowed', problem)
}

/** Characters of an origin that are repeated in the error message. */
const maxShownOrigin = 200

/** Whether the operator allows pages of this origin; those of this machine are allowed unless the list says otherwise. */
export function isAllowedOrigin(origin: string, origins: ReadonlySet<string>): boolean {
  if (origins.has('*') || origins.has(origin)) return true
  return !origins.has(noLocalPages) && isLocalOrigin(origin)
}

/** Compares hosts only: behind a proxy that ends TLS, the scheme of the request is not that of the page. */
function isSameOrigin(request: Request, origin: string): boolean {
  const page = pageOf(origin)
  return page !== undefined && page.host === new URL(request.url).host
}

function isLocalOrigin(origin: string): boolean {
  const page = pageOf(origin)
  return page !== undefined && isLoopback(page.hostname.replace(/^\[(.*)\]$/, '$1'))
}

/** The address of a web page's origin, if it is written as browsers send it. */
function pageOf(origin: string): URL | undefined {
  if (!/^https?:/.test(origin) || !URL.canParse(origin)) return undefined
  const page = new URL(origin)
  return page.origin === origin ? page : undefined
}
