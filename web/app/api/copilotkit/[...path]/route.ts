import { forward } from '../../../../lib/proxy/forward.ts'

/** The runtime, through the page's own server: one origin for the browser, one address to configure. */
const handle = (request: Request) =>
  forward(request, {
    upstream: process.env.HANDRAIL_URL || 'http://localhost:8000',
    mount: '/api/copilotkit',
    localOnly: !process.env.WEB_HOST,
  })

export const dynamic = 'force-dynamic'

export {
  handle as DELETE,
  handle as GET,
  handle as HEAD,
  handle as OPTIONS,
  handle as PATCH,
  handle as POST,
  handle as PUT,
}
