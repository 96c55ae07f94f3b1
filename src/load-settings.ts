import { existsSync, statSync } from 'node:fs'
import { basename, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { checkSettings } from './check-settings.ts'
import { ConfigError } from './lib/config-error.ts'
import type { Settings } from './settings.ts'

/** Reads the named file, or `handrail.config.{ts,mjs,js}` beside us if there is one. */
export async function loadSettings(named: string | undefined): Promise<Settings> {
  const names =
    named === undefined ? ['ts', 'mjs', 'js'].map((end) => `handrail.config.${end}`) : [named]
  const path = names.map((name) => resolve(name)).find((one) => existsSync(one))
  if (path === undefined) {
    if (named === undefined) return {}
    throw new ConfigError(`HANDRAIL_CONFIG: there is no file ${named}.`)
  }
  const name = named ?? basename(path)
  if (!statSync(path).isFile())
    throw new ConfigError(`HANDRAIL_CONFIG: ${name} is no file. Name the file in it.`)
  const module = await load(path).catch((error: unknown) => {
    throw new ConfigError(`${name}: ${told(error, path)}`)
  })
  const settings = module.default?.default ?? module.default
  if (typeof settings !== 'object' || settings === null || Array.isArray(settings)) {
    throw new ConfigError(`${name}: export the settings as the default export.`)
  }
  checkSettings(settings as Settings)
  return settings as Settings
}

async function load(path: string): Promise<{ default?: { default?: unknown } }> {
  const url = pathToFileURL(path).href
  if (!path.endsWith('.ts')) return await import(url)
  return await (await import('tsx/esm/api')).tsImport(url, import.meta.url)
}

/** One line of what stopped it, and which line of the file did where that is known. */
function told(error: unknown, path: string): string {
  if (!(error instanceof Error)) return `it threw ${String(error)}.`
  const written = /:(\d+):\d+: ERROR: (.+)/.exec(error.message) // as esbuild says it
  if (written) return `line ${written[1]}: ${written[2]}.`
  const [first = ''] = error.message.split('\n')
  if (error.name === 'SyntaxError') return `${first}. \`node --check ${path}\` shows where.`
  const at = (error.stack ?? '').split(`${path}:`)[1]?.match(/^\d+/)
  return at ? `line ${at}: ${first}` : first
}
