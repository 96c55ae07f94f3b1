import type { Command } from './commands/command.ts'
import { talking } from './commands/talking.ts'
import { ConfigError, readConfig } from './config.ts'
import { version } from './version.ts'

const help = `handrail                     serve, until it is stopped
handrail migrate             bring the database's schema up to date
handrail export <directory>  copy every thread from the store to a directory
handrail import <directory>  copy every thread from a directory to the store
handrail prune --older-than 90d [--archived] [--erase]
                             remove threads that nobody touched; without --erase only name them
handrail policy test [--config new.config.mjs] [--since 90d] [--json]
                             what a policy would have said of calls that were asked about before
handrail erase --owner U [--tenant T]
                             remove all threads of a user
handrail audit verify [FILE] [--thread ID] [--heads FILE] [--require-chain] [--json]
handrail audit head [--thread ID]
handrail audit export --thread ID
                             prove that nothing was changed; print heads to keep elsewhere, or decisions

handrail --version

The store is Postgres when DATABASE_URL is set, and the directory HANDRAIL_DATA (./data) otherwise.
The server is set by the environment: PORT (8000), HANDRAIL_CONFIG (handrail.config.ts: agents, tools, policy),
HANDRAIL_MODEL and the key for it, HANDRAIL_API_KEYS. All of them: the table of settings in README.md.
`

/** Loaded when they are asked for: a server needs none of the others. */
const commands: Record<string, () => Promise<(command: Command) => Promise<number>>> = {
  serve: async () => (await import('./commands/serve.ts')).serve,
  migrate: async () => (await import('./commands/migrate.ts')).migrateDatabase,
  export: async () => (await import('./commands/export.ts')).exportThreads,
  import: async () => (await import('./commands/import.ts')).importThreads,
  policy: async () => (await import('./commands/policy.ts')).policy,
  erase: async () => (await import('./commands/erase.ts')).eraseOwner,
  audit: async () => (await import('./commands/audit.ts')).audit,
  prune: async () => (await import('./commands/prune.ts')).prune,
}

/** What the command line asks for; the exit code. */
export async function cli(argv: readonly string[]): Promise<number> {
  return await run(argv).catch(die)
}

async function run([name = 'serve', ...args]: readonly string[]): Promise<number> {
  if (['help', '--help', '-h'].includes(name) || args.includes('--help')) {
    process.stdout.write(help)
    return 0
  }
  if (['version', '--version', '-v'].includes(name)) {
    process.stdout.write(`${version()}\n`)
    return 0
  }
  if (!Object.hasOwn(commands, name))
    throw new ConfigError(`There is no command ${name}.\n\n${help}`)
  const command = await commands[name]!()
  return await command({ config: readConfig(process.env), args, ...talking() })
}

function die(error: unknown): never {
  const { code, message, stack } = error as { code?: string; message?: string; stack?: string }
  process.stderr.write(`Handrail cannot go on: ${message}\n`)
  const expected = error instanceof ConfigError || code !== undefined
  if (!expected) process.stderr.write(`${stack}\n`)
  process.exit(1)
}
