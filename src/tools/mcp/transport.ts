import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import { EarlyEnds, longest } from './early-ends.ts'
import { forTenant, type McpServer } from './servers.ts'

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
    const { transport } = new EarlyEnds((fetch) => {
      const options = { requestInit: { headers }, fetch }
      // Its session id is optional in another way than the interface says.
      return new StreamableHTTPClientTransport(new URL(server.url), options) as Transport
    })
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
