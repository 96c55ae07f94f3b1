import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import { forTenant, type McpServer } from './servers.ts'

/** Bytes of one message of a server; what is longer ends the connection. */
const longest = 16 * 1024 * 1024

export interface Way {
  transport: Transport
  /** Ends the program at once; nothing for an address. Must not be called once it has ended. */
  kill(): void
}

/** The way to a server, not yet open. `tenant` is undefined for what belongs to nobody. */
export async function wayTo(server: McpServer, tenant?: string): Promise<Way> {
  if ('url' in server) {
    const { StreamableHTTPClientTransport } = await import(
      '@modelcontextprotocol/sdk/client/streamableHttp.js'
    )
    const headers = forTenant(server.headers, tenant) ?? {}
    const options = { requestInit: { headers }, fetch: boundedFetch }
    // Its session id is optional in another way than the interface says.
    const transport = new StreamableHTTPClientTransport(new URL(server.url), options) as Transport
    return { transport, kill: () => {} }
  }
  const { StdioClientTransport } = await import('@modelcontextprotocol/sdk/client/stdio.js')
  const { command, args = [], cwd } = server
  const env = forTenant(server.env, tenant) ?? {}
  const place = cwd === undefined ? {} : { cwd }
  const transport = new StdioClientTransport({
    ...{ command, args: [...args], env, ...place },
    stderr: 'ignore',
    maxBufferSize: longest,
  })
  // It forgets its process when it begins to close it, and is polite to it for seconds.
  let pid: number | null = null
  const start = transport.start.bind(transport)
  transport.start = async () => {
    await start()
    pid = transport.pid
  }
  return { transport, kill: () => void (pid !== null && process.kill(pid, 'SIGKILL')) }
}

/** Answers to what we send are bounded; the stream of what a server tells by itself has no end. */
async function boundedFetch(url: string | URL, init?: RequestInit): Promise<Response> {
  const response = await fetch(url, init)
  if (!response.body || init?.method !== 'POST') return response
  let left = longest
  const limit = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, out) {
      left -= chunk.byteLength
      if (left < 0) out.error(new Error(`The answer is longer than ${longest} bytes.`))
      else out.enqueue(chunk)
    },
  })
  const { status, statusText, headers } = response
  return new Response(response.body.pipeThrough(limit), { status, statusText, headers })
}
