import { compose } from '../compose.ts'
import { loadSettings } from '../settings.ts'
import type { Command } from './command.ts'

/** `handrail`: the server, until a signal stops it. */
export async function serve({ config, say }: Command): Promise<number> {
  // First of all: whoever starts us may change their mind while we begin.
  const stopped = new Promise<void>((resolve) => {
    // A signal may come twice, from the terminal and from npm; one is enough.
    process.on('SIGINT', () => resolve())
    process.on('SIGTERM', () => resolve())
  })
  const server = await compose(config, await loadSettings(config.configFile))
  const port = await server.listen()
  const host = config.host === '0.0.0.0' || config.host === '::' ? 'localhost' : config.host
  const only = config.apiKeys.size === 0 ? ' (this machine only: no HANDRAIL_API_KEYS set)' : ''
  say(`Handrail listens on http://${host}:${port}${only}`)
  await stopped
  await server.close()
  return 0
}
