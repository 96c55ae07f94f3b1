/** CopilotKit's name for the key that `HANDRAIL_PUBLIC_API_KEY` asks for. */
const publicKey = 'x-copilotcloud-public-api-key'

/** What the runtime is told of a request. Cookies stay here: the runtime knows none. */
const asked = [
  'accept',
  'accept-language',
  'authorization',
  'content-type',
  'idempotency-key',
  'last-event-id',
  publicKey,
  'x-api-key',
  'x-model-api-key',
]

/** What the page is told of an answer. */
const answered = [
  'allow',
  'content-type',
  'etag',
  'location',
  'retry-after',
  'www-authenticate',
  'x-interaction-id',
]

/** `key` is the runtime's public key: no secret, so the page's server sends it for every visitor. */
export function requestHeaders(from: Headers, key?: string): Headers {
  const headers = pick(from, asked)
  if (key && !headers.has(publicKey)) headers.set(publicKey, key)
  headers.set('accept-encoding', 'identity') // so that what is read can be passed on as it is
  return headers
}

export function responseHeaders(from: Headers): Headers {
  const headers = pick(from, answered)
  // `no-transform` keeps whatever stands between from holding a stream back to compress it.
  headers.set('cache-control', 'no-store, no-transform')
  headers.set('x-accel-buffering', 'no')
  return headers
}

function pick(from: Headers, names: readonly string[]): Headers {
  const headers = new Headers()
  for (const name of names) {
    const value = from.get(name)
    if (value !== null) headers.set(name, value)
  }
  return headers
}
