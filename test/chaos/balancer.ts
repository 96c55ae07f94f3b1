import { once } from 'node:events'
import { Agent, createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'

export interface Balancer {
  url: string
  /** What clients got to see that they should not. */
  failures: string[]
  /** Requests that found nobody listening, and went to another server. */
  refused: number
  close(): Promise<void>
}

/**
 * In front of servers that come and go: in turn, those that say they are ready. It sends a request to
 * another server only when a connection was refused, so that nothing is done twice.
 */
export async function balance(servers: () => string[]): Promise<Balancer> {
  const over = new AbortController()
  const agent = new Agent({ keepAlive: true, timeout: 60_000 })
  /** Each is asked by itself: one that is slow to say so must not speak for the others. */
  const known = new Map<string, boolean>()
  let turn = 0
  const watch = async (url: string) => {
    known.set(url, false)
    while (!over.signal.aborted && servers().includes(url)) {
      known.set(url, await isReady(url))
      await sleep(100)
    }
    known.delete(url)
  }
  const ask = async () => {
    while (!over.signal.aborted) {
      for (const url of servers()) if (!known.has(url)) void watch(url)
      await sleep(50)
    }
  }

  const server = createServer(async (incoming, outgoing) => {
    const body = await buffer(incoming)
    for (const _ of servers()) {
      const ready = [...known].flatMap(([url, is]) => (is ? [url] : []))
      const url = ready[turn++ % ready.length]
      if (url === undefined) break
      if (await forward(url, incoming, body, outgoing)) return
      balancer.refused++
    }
    balancer.failures.push(`nobody for ${incoming.method} ${incoming.url}`)
    outgoing.writeHead(502).end()
  })

  /** False when nothing was sent. */
  const forward = (
    url: string,
    { method, url: path, headers }: IncomingMessage,
    body: Buffer,
    outgoing: ServerResponse,
  ) =>
    new Promise<boolean>((resolve) => {
      const said = `${method} ${path}`
      const { host: _, connection: __, ...rest } = headers
      const sent = request(url + path, { agent, headers: rest, ...(method && { method }) })
      sent.on('response', (answer) => {
        resolve(true)
        if ((answer.statusCode ?? 500) >= 500)
          balancer.failures.push(`${said}: ${answer.statusCode}`)
        const { connection: ___, ...given } = answer.headers
        outgoing.writeHead(answer.statusCode ?? 502, given)
        answer.pipe(outgoing)
        answer.on('error', (error) => {
          if (!outgoing.writableEnded) balancer.failures.push(`${said}: cut, ${error.message}`)
          outgoing.destroy()
        })
        outgoing.on('close', () => sent.destroy())
      })
      sent.on('error', (error: NodeJS.ErrnoException) => {
        if (error.code === 'ECONNREFUSED') return resolve(false)
        if (!outgoing.destroyed && !outgoing.writableEnded) {
          balancer.failures.push(`${said}: ${error.message}`)
          outgoing.destroy()
        }
        resolve(true)
      })
      sent.end(body)
    })

  const asking = ask()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const balancer: Balancer = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    failures: [],
    refused: 0,
    async close() {
      over.abort()
      await asking
      server.close()
      server.closeAllConnections()
      agent.destroy()
    },
  }
  while (servers().some((url) => !known.get(url))) await sleep(50)
  return balancer
}

async function isReady(url: string): Promise<boolean> {
  try {
    return (await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(2_000) })).ok
  } catch {
    return false
  }
}
