import { RuntimeError } from '../../core/errors.ts'
import { type Route, route } from '../http.ts'

/** Figures of this process, for operators: they name tenants. */
export const metricsRoute = (text: () => string): Route =>
  route({
    method: 'get',
    path: '/metrics',
    summary: 'Model calls, tokens and money of this server, as Prometheus reads them',
    responses: { 200: { description: 'Text' }, 403: { description: 'For operators only' } },
    handle: async ({ caller }) => {
      if (!caller.roles.includes('operator')) throw new RuntimeError('forbidden')
      const type = 'text/plain; version=0.0.4; charset=utf-8'
      return new Response(text(), { headers: { 'content-type': type } })
    },
  })
