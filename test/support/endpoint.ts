import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'

export interface Received {
  path: string
  headers: IncomingHttpHeaders
  body: string
  // biome-ignore lint/suspicious/noExplicitAny: the payload, looked into by assertions
  json: any
}

export const webhookSecret = `whsec_${Buffer.from('a secret of at least 24 bytes').toString('base64')}`

/** An address that takes webhooks, and answers each as it is told to; `hang`: not at all. */
export async function endpoint(answer: (nth: number) => number | 'hang' = () => 204) {
  const received: Received[] = []
  const waiting = new Set<() => void>()
  const http = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    const { url: path = '', headers } = request
    received.push({ path, headers, body, json: body === '' ? undefined : JSON.parse(body) })
    for (const wake of waiting) wake()
    const status = answer(received.length)
    if (status === 'hang') return
    response.writeHead(status, status === 302 ? { location: '/elsewhere' } : {}).end()
  })
  http.listen(0, '127.0.0.1')
  await once(http, 'listening')
  onTestFinished(() => {
    http.closeAllConnections()
    http.close()
  })
  return {
    url: `http://127.0.0.1:${(http.address() as AddressInfo).port}/hook`,
    received,
    /** Until so many have come. */
    async come(count: number): Promise<Received[]> {
      await new Promise<void>((resolve) => {
        const look = () => {
          if (received.length < count) return
          waiting.delete(look)
          resolve()
        }
        waiting.add(look)
        look()
      })
      return received
    },
  }
}
