import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'

export interface OddMcp {
  tools: unknown[]
  /** Whether it gives its clients a session; by default it does. */
  sessions?: boolean
  /** How a call is answered. */
  call?(id: number, response: ServerResponse): void
  /** How one that comes back for the rest is. */
  resume?(response: ServerResponse, request: IncomingMessage): void
}

export const answer = (id: number, text = 'done') =>
  JSON.stringify({ jsonrpc: '2.0', id, result: { content: [{ type: 'text', text }] } })

export function stream(response: ServerResponse, ...texts: string[]): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.flushHeaders()
  for (const text of texts) response.write(text)
}

/** A server that says what it likes, as plain bytes: the SDK's own would not. */
export async function oddMcp({ tools, call, resume, sessions = true }: OddMcp): Promise<string> {
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    if (request.method === 'GET' && request.headers['last-event-id'] && resume)
      return resume(response, request)
    if (request.method !== 'POST') return void response.writeHead(405).end()
    const { id, method, params } = JSON.parse(body)
    if (id === undefined) return void response.writeHead(202).end()
    const results: Record<string, object> = {
      initialize: {
        protocolVersion: params?.protocolVersion,
        capabilities: { tools: {} },
        serverInfo: { name: 'odd', version: '1' },
      },
      'tools/list': { tools },
      ping: {},
    }
    if (method === 'tools/call') return call?.(id, response)
    if (sessions) response.setHeader('mcp-session-id', 's')
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ jsonrpc: '2.0', id, result: results[method] }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`
}
