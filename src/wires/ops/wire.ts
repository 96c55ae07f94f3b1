import { setImmediate } from 'node:timers/promises'
import type { Runtime } from '../../core/runtime.ts'
import { sha256 } from '../../lib/canonical.ts'
import { lazily } from '../../lib/lazily.ts'
import { json, type Route, route, unframed } from '../http.ts'
import { docsPage } from './docs-page.ts'
import { openApi } from './openapi.ts'

/** What operators and tools ask of the server itself. */
export function opsWire(
  runtime: Runtime,
  routes: () => readonly Route[],
  version: string,
): Route[] {
  // Made once and in steps: it takes tens of milliseconds, and the routes need no authentication.
  const documents = lazily(async () => {
    const document = await openApi(routes(), version)
    await setImmediate()
    const json = fixed(JSON.stringify(document))
    await setImmediate()
    return { json, page: fixed(docsPage(document)) }
  })
  return [
    route({
      method: 'get',
      path: '/',
      summary: 'The way to the documentation',
      responses: { 302: { description: 'To /docs' } },
      handle: async () => new Response(null, { status: 302, headers: { location: '/docs' } }),
    }),
    route({
      method: 'get',
      path: '/healthz',
      summary: 'The process is up',
      responses: { 200: { description: 'It is' } },
      handle: async () => json({ status: 'ok', version }),
    }),
    route({
      method: 'get',
      path: '/readyz',
      summary: 'The server takes work',
      responses: { 200: { description: 'It does' }, 503: { description: 'Not now' } },
      handle: async () => {
        const problem = await runtime.problem()
        if (problem === undefined) return json({ status: 'ready', legs: runtime.legs })
        return json({ status: 'unavailable', problem }, 503, { 'retry-after': '1' })
      },
    }),
    route({
      method: 'get',
      path: '/openapi.json',
      summary: 'This API as an OpenAPI document',
      responses: { 200: { description: 'OpenAPI 3.1' }, 304: { description: 'As you have it' } },
      async warmUp() {
        await documents()
      },
      handle: async ({ request }) =>
        unchanging(request, (await documents()).json, {
          'content-type': 'application/json; charset=utf-8',
        }),
    }),
    route({
      method: 'get',
      path: '/docs',
      summary: 'This API as a page',
      responses: { 200: { description: 'HTML' }, 304: { description: 'As you have it' } },
      handle: async ({ request }) =>
        unchanging(request, (await documents()).page, {
          'content-type': 'text/html; charset=utf-8',
          'content-security-policy': `default-src 'none'; style-src 'unsafe-inline'; ${unframed}`,
        }),
    }),
  ]
}

interface Fixed {
  text: string
  etag: string
}

const fixed = (text: string): Fixed => ({ text, etag: `"${sha256(text).slice(0, 32)}"` })

/** A text that stays the same while the server runs; nothing for a client that has it. */
function unchanging(
  request: Request,
  { text, etag }: Fixed,
  headers: Record<string, string>,
): Response {
  const caching = { etag, 'cache-control': 'no-cache' }
  const known = request.headers.get('if-none-match')?.split(',') ?? []
  if (known.some((one) => one.trim().replace(/^W\//, '') === etag))
    return new Response(null, { status: 304, headers: caching })
  return new Response(text, { headers: { ...headers, ...caching } })
}
