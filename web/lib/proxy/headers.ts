/** What the runtime is told of a request. Cookies stay here: the runtime knows none. */
const asked = [
  'accept',
  'accept-language',
  'authorization',
  'content-type',
  'idempotency-key',
  'last-event-id',
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

export function requestHeaders(from: Headers): Headers {
  const headers = pick(from, asked)
  headers.set('accept-encoding', 'identity') // so that what is read can be passed on as it is
  return headers
}

export function responseHeaders(from: Headers): Headers {
  const headers = pick(from, answered)
  // `no-transform` keeps whatever stands between from holding a stream back to compress it.
  headers.set('cache-control', 'no-cache, no-transform')
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
