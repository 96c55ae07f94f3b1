import { createServer, type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { getRequestListener, type HttpBindings, RequestError } from '@hono/node-server'
import { RuntimeError, toRuntimeError } from './core/errors.ts'
import { ConfigError } from './lib/config-error.ts'
import { turnstile } from './lib/turnstile.ts'
import { setBodySource } from './wires/body-source.ts'
import { errorResponse, withSafeHeaders } from './wires/http.ts'
import { setResponse } from './wires/response-end.ts'

export interface Listener {
  port: number
  /** From here on connections are not kept: whoever sends the next request has to look for a server. */
  leave(): void
  /** Takes no more connections; those that are in use go on. */
  close(): void
  /** Resolves when every request is answered in full, or `wait` later. */
  answered(wait: number): Promise<void>
}

/**
 * Milliseconds for which a quiet connection is kept. Load balancers keep theirs for 60 s: were we the first
 * to let go, a request could be on its way.
 */
const keepAliveTimeout = 75_000

type Fetch = (request: Request) => Promise<Response>
type FetchCallback = Parameters<typeof getRequestListener>[0]

/** Resolves once connections are taken. */
export async function listen(
  fetch: Fetch,
  { port, host: hostname }: { port: number; host: string },
): Promise<Listener> {
  let leaving = false
  const enter = turnstile()
  const answer = async (request: Request, { incoming, outgoing }: HttpBindings) => {
    if (incoming.headers.host === undefined && incoming.httpVersion !== '1.0') return noAddress()
    setBodySource(request, incoming)
    setResponse(request, outgoing as ServerResponse)
    await enter()
    const response = await fetch(request)
    if (!leaving) return response
    response.headers.set('connection', 'close')
    return isJson(response) && !response.bodyUsed ? withLength(response) : response
  }
  const listener = getRequestListener(answer as FetchCallback, { hostname, errorHandler })
  const server = createServer({ keepAliveTimeout, requireHostHeader: false }, listener)
  server.on('checkExpectation', refuseExpectation)
  /** The responses that have not ended, by connection: clients may send several requests at once. */
  const responses = new WeakMap<Duplex, Set<ServerResponse>>()
  server.on('clientError', (error, socket) => {
    // A refusal answers a request that could not be read. It must not stand in the place of another response, or inside of one.
    const isRefusable = ({ req, headersSent }: ServerResponse) => !req.complete && !headersSent
    const unfinished = [...(responses.get(socket) ?? [])]
    if (unfinished.every(isRefusable)) refuseUnreadable(error, socket)
    else socket.destroy()
  })
  let open = 0
  let heard = () => {}
  // Requests, not connections: some are opened in advance, and nothing ever comes by them.
  server.on('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    open++
    const ofSocket = responses.get(socket) ?? new Set()
    responses.set(socket, ofSocket.add(response))
    response.once('close', () => {
      open--
      ofSocket.delete(response)
      if (open === 0) heard()
    })
  })
  await new Promise<void>((resolve, reject) => {
    server.once('listening', resolve)
    server.once('error', (error) => reject(told(error, port, hostname)))
    server.listen(port, hostname)
  })
  return {
    port: (server.address() as AddressInfo).port,
    leave() {
      leaving = true
    },
    close() {
      server.close()
      server.closeIdleConnections()
    },
    async answered(wait) {
      if (open === 0) return
      await new Promise<void>((resolve) => {
        const late = setTimeout(resolve, wait)
        heard = () => {
          clearTimeout(late)
          resolve()
        }
      })
    },
  }
}

const isJson = (response: Response): boolean =>
  response.headers.get('content-type')?.startsWith('application/json') ?? false

/**
 * The same response with its body read to the end, so that it is sent with a `Content-Length`. Clients on
 * undici take a chunked body of a connection that closes as complete wherever it breaks off.
 */
async function withLength(response: Response): Promise<Response> {
  const { status, headers } = response
  return new Response(Buffer.from(await response.arrayBuffer()), { status, headers })
}

/** The response to a request that has no valid address, for example because its `Host` is malformed. */
function errorHandler(error: unknown): Response {
  return error instanceof RequestError ? noAddress() : safeError(toRuntimeError(error))
}

function noAddress(): Response {
  const fix = 'The Host header or the address of the request is missing or malformed.'
  return safeError(new RuntimeError('invalid_request', fix, { field: 'host' }))
}

const safeError = (error: RuntimeError) => withSafeHeaders(errorResponse(error))

function refuseExpectation(_request: IncomingMessage, response: ServerResponse): void {
  response.writeHead(417, Object.fromEntries(withSafeHeaders(new Response(null)).headers)).end()
}

/** Answers a request that is not HTTP, or whose headers are too long or come too slowly, and closes the connection. */
function refuseUnreadable({ code }: NodeJS.ErrnoException, socket: Duplex): void {
  if (code === 'ECONNRESET' || !socket.writable) return void socket.destroy()
  const statuses: Record<string, number> = {
    HPE_HEADER_OVERFLOW: 431,
    HPE_CHUNK_EXTENSIONS_OVERFLOW: 413,
    ERR_HTTP_REQUEST_TIMEOUT: 408,
  }
  const status = statuses[code ?? ''] ?? 400
  const headers = [...withSafeHeaders(new Response(null)).headers]
  const lines = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'connection: close',
    ...headers.map((header) => header.join(': ')),
  ]
  socket.end(`${lines.join('\r\n')}\r\n\r\n`, () => socket.destroy())
}

/** Why there is nothing to listen on, with the setting that would help. */
function told(error: NodeJS.ErrnoException, port: number, host: string): Error {
  const sentences: Record<string, string> = {
    EADDRINUSE: `PORT: ${port} is taken by another program. Set PORT to a free one.`,
    EACCES: `PORT: ${port} is not for this user. Set PORT to one over 1023.`,
    EADDRNOTAVAIL: `HOST: ${host} is no address of this machine. Set HOST to one that is.`,
    ENOTFOUND: `HOST: there is no ${host}. Set HOST to an address of this machine.`,
  }
  const sentence = sentences[error.code ?? '']
  return sentence === undefined ? error : new ConfigError(sentence)
}
