import { setFlagsFromString } from 'node:v8'
import { pino } from 'pino'
import { compose } from '../compose.ts'
import { type Config, ConfigError, variables } from '../config.ts'
import { troubleOf } from '../core/trouble.ts'
import { strangeNames } from '../env-names.ts'
import { loadSettings } from '../load-settings.ts'
import { type Command, complain } from './command.ts'

/** `handrail`: the server, until a signal stops it. */
export async function serve({ config, args, say }: Command): Promise<number> {
  if (args.length > 0)
    throw new ConfigError(
      `serve does not know ${args[0]}. It is set by the environment, as PORT=8000: see handrail --help.`,
    )
  for (const told of strangeNames(process.env, variables)) complain(told)
  // What nobody used for some seconds would be compiled anew for whoever speaks next.
  setFlagsFromString('--no-flush-bytecode')
  // Listened for from the first moment: the first process of a container is not ended by a signal that
  // it does not handle. One may come twice, from the terminal and from npm; one is enough.
  const told = new Promise<void>((resolve) => {
    process.on('SIGINT', () => resolve())
    process.on('SIGTERM', () => resolve())
  })
  const log = pino({ level: config.logLevel })
  // Of a tool that forgot to wait for something, say. What counts is in the journal: no reason to cut off all chats.
  process.on('unhandledRejection', (reason) =>
    log.error(troubleOf(reason), 'something failed that nobody waited for'),
  )
  const server = await compose(config, await loadSettings(config.configFile), undefined, log)
  const port = await server.listen()
  say(`Handrail listens on ${addressOf(config, port)}`)
  if (server.notice !== undefined) say(server.notice)
  void server.warmUp()
  await told
  await server.close()
  return 0
}

/** Where to reach it from here, and who else does. */
export function addressOf(
  { host, apiKeys }: Pick<Config, 'host' | 'apiKeys'>,
  port: number,
): string {
  const everywhere = host === '0.0.0.0' || host === '::'
  const name = everywhere ? 'localhost' : host.includes(':') ? `[${host}]` : host
  const only = apiKeys.size === 0 ? ' (this machine only: no HANDRAIL_API_KEYS set)' : ''
  return `http://${name}:${port}${everywhere ? ' (on all addresses)' : only}`
}
