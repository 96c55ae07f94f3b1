import { once } from 'node:events'
import { Agent, createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A balancer without memory: each request goes to the next server, whoever it is from. */
export interface RoundRobin {
  url: string
  /** Which server each request went to, oldest first. */
  taken: { method: string; path: string; target: string }[]
  close(): Promise<void>
}

export async function roundRobin(targets: readonly string[]): Promise<RoundRobin> {
  const agent = new Agent({ keepAlive: true })
  const taken: RoundRobin['taken'] = []
  const server = createServer((from, to) => {
    const target = targets[taken.length % targets.length]!
    const { method = 'GET', url: path = '/' } = from
    taken.push({ method, path, target })
    pass(from, to, target, agent)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    taken,
    async close() {
      server.close()
      server.closeAllConnections()
      agent.destroy()
      await once(server, 'close')
    },
  }
}

/** As it comes: what is written is passed on at once, and who leaves has left on both sides. */
function pass(from: IncomingMessage, to: ServerResponse, target: string, agent: Agent): void {
  const { method, url, headers } = from
  const upstream = request(new URL(url ?? '/', target), { method, headers, agent })
  upstream.on('response', (answer) => {
    to.writeHead(answer.statusCode ?? 502, answer.headers)
    to.flushHeaders()
    answer.pipe(to)
    answer.on('error', () => to.destroy()) // cut there is cut here
  })
  upstream.on('error', () => {
    if (to.headersSent) to.destroy()
    else to.writeHead(502).end()
  })
  to.on('close', () => {
    if (!to.writableFinished) upstream.destroy()
  })
  from.pipe(upstream)
}
