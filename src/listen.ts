import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { serve } from '@hono/node-server'
import { ConfigError } from './lib/config-error.ts'
import { turnstile } from './lib/turnstile.ts'

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

/** Resolves once connections are taken. */
export async function listen(
  fetch: Fetch,
  { port, host: hostname }: { port: number; host: string },
): Promise<Listener> {
  let leaving = false
  const enter = turnstile()
  const answer: Fetch = async (request) => {
    await enter()
    const response = await fetch(request)
    if (!leaving) return response
    response.headers.set('connection', 'close')
    return isJson(response) && !response.bodyUsed ? withLength(response) : response
  }
  const serverOptions = { keepAliveTimeout }
  const server = serve({ fetch: answer, port, hostname, serverOptions })
  let open = 0
  let heard = () => {}
  // Requests, not connections: some are opened in advance, and nothing ever comes by them.
  server.on('request', (_request: IncomingMessage, response: ServerResponse) => {
    open++
    response.once('close', () => {
      open--
      if (open === 0) heard()
    })
  })
  await new Promise<void>((resolve, reject) => {
    server.once('listening', resolve)
    server.once('error', (error) => reject(told(error, port, hostname)))
  })
  return {
    port: (server.address() as AddressInfo).port,
    leave() {
      leaving = true
    },
    close() {
      server.close()
      if ('closeIdleConnections' in server) server.closeIdleConnections()
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
