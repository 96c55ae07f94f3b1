import { forward } from '../../../../lib/proxy/forward.ts'
import { hostCheck } from '../../../../lib/proxy/hosts.ts'

const { HANDRAIL_URL, HANDRAIL_PUBLIC_API_KEY, WEB_HOST, WEB_ALLOWED_HOSTS } = process.env
const upstream = HANDRAIL_URL || 'http://localhost:8000'
const isHost = hostCheck({ listensOn: WEB_HOST, names: WEB_ALLOWED_HOSTS, upstream })

/** The runtime, through the page's own server: one origin for the browser, one address to configure. */
const handle = (request: Request) =>
  forward(request, {
    upstream,
    mount: '/api/copilotkit',
    publicKey: HANDRAIL_PUBLIC_API_KEY,
    isHost,
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
