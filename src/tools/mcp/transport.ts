import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import { connectionSecrets } from '../../core/connection-secrets.ts'
import { EarlyEnds, longest } from './early-ends.ts'
import { forTenant, type McpServer } from './servers.ts'

export interface Way {
  transport: Transport
  /** Keys of the operator that the server gets: its errors must not bring them to users. */
  secrets: readonly string[]
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
    return { transport, secrets: connectionSecrets(headers, server.url), kill: () => {} }
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
  const secrets = connectionSecrets({}, { env, args })
  return { transport, secrets, kill: () => void (pid !== null && process.kill(pid, 'SIGKILL')) }
}
