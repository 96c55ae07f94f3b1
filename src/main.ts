#!/usr/bin/env node
import { compose } from './compose.ts'
import { ConfigError, readConfig } from './config.ts'
import { loadSettings } from './settings.ts'

async function main(): Promise<void> {
  const config = readConfig(process.env)
  const server = await compose(config, await loadSettings(config.configFile))
  const port = await server.listen()
  const host = config.host === '0.0.0.0' || config.host === '::' ? 'localhost' : config.host
  const only = config.apiKeys.size === 0 ? ' (this machine only: no HANDRAIL_API_KEYS set)' : ''
  process.stdout.write(`Handrail listens on http://${host}:${port}${only}\n`)

  // A signal may come twice, from the terminal and from npm; one is enough.
  let stopping = false
  const stop = () => {
    if (stopping) return
    stopping = true
    server.close().then(() => process.exit(0), die)
  }
  process.on('SIGINT', stop)
  process.on('SIGTERM', stop)
}

function die(error: unknown): never {
  const { code, message, stack } = error as { code?: string; message?: string; stack?: string }
  const taken = 'The port is taken by another program. Set PORT to a free one.'
  process.stderr.write(`Handrail cannot go on: ${code === 'EADDRINUSE' ? taken : message}\n`)
  const expected = error instanceof ConfigError || code !== undefined
  if (!expected) process.stderr.write(`${stack}\n`)
  process.exit(1)
}

await main().catch(die)
