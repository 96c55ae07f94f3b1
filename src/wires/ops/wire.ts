import type { Runtime } from '../../core/runtime.ts'
import { json, type Route, route } from '../http.ts'
import { docsPage } from './docs-page.ts'
import { openApi } from './openapi.ts'

/** What operators and tools ask of the server itself. */
export function opsWire(
  runtime: Runtime,
  routes: () => readonly Route[],
  version: string,
): Route[] {
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
      responses: { 200: { description: 'OpenAPI 3.1' } },
      handle: async () => json(openApi(routes(), version)),
    }),
    route({
      method: 'get',
      path: '/docs',
      summary: 'This API as a page',
      responses: { 200: { description: 'HTML' } },
      handle: async () =>
        new Response(docsPage(openApi(routes(), version)), {
          headers: {
            'content-type': 'text/html; charset=utf-8',
            'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'",
          },
        }),
    }),
  ]
}
