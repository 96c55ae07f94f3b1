import type { ServerResponse } from 'node:http'

const responses = new WeakMap<Request, ServerResponse>()

/** Records the Node response by which a web request is answered. */
export function setResponse(request: Request, outgoing: ServerResponse): void {
  responses.set(request, outgoing)
}

/**
 * Calls `end` once when the response was sent or its connection has closed. Returns false if the request did not come
 * over a connection, and `end` will not be called.
 */
export function onResponseEnd(request: Request, end: () => void): boolean {
  const outgoing = responses.get(request)
  if (!outgoing) return false
  if (outgoing.closed) end()
  else outgoing.once('close', end)
  return true
}
