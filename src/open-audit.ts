import { randomBytes } from 'node:crypto'
import { open, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Config } from './config.ts'
import { type AuditKeys, auditKeys } from './core/audit.ts'
import type { Log } from './core/worker.ts'
import { ConfigError } from './lib/config-error.ts'
import { privateFile } from './lib/private.ts'

type Around = Pick<Config, 'audit' | 'database' | 'data'>

interface Opened {
  keys?: AuditKeys
  /** For whoever starts the server. */
  notice?: string
}

/** The keys of the chain. A server on files makes itself one; many servers must be given the same. */
export async function openAudit(config: Around, log: Log): Promise<Opened> {
  const { audit, database, data } = config
  if (!audit.on) return {}
  const known = auditKeys(await secretsOf(config))
  if (known) return { keys: known }
  if (database) {
    log.warn({}, 'HANDRAIL_AUDIT_KEY is not set: what is written cannot be audited later')
    return {}
  }
  const path = keyFile(data)
  const made = randomBytes(32).toString('base64url')
  await writeKey(path, made)
  const notice = `An audit key was made: ${path}. Keep a copy elsewhere (docs/audit.md).`
  return { keys: auditKeys([made])!, notice }
}

/** For commands: they prove with the keys that there are, and make none. */
export async function findAudit(config: Around): Promise<AuditKeys> {
  const keys = auditKeys(await secretsOf(config))
  if (!keys) throw new ConfigError('Set HANDRAIL_AUDIT_KEY to the key that the servers have.')
  return keys
}

/** For commands that leave a proof behind them where they can. */
export async function auditIfAny(config: Around): Promise<AuditKeys | undefined> {
  return config.audit.on ? auditKeys(await secretsOf(config)) : undefined
}

/** Those that were given, and the one that was made here before. */
async function secretsOf({ audit, database, data }: Around): Promise<string[]> {
  const made = database ? undefined : await readKey(keyFile(data))
  return [...new Set([...audit.secrets, ...(made === undefined ? [] : [made])])]
}

const keyFile = (data: string) => join(data, 'audit.key')

async function readKey(path: string): Promise<string | undefined> {
  try {
    const key = (await readFile(path, 'utf8')).trim()
    if (key.length < 32) throw new ConfigError(`${path} has no key of 32 characters or more.`)
    return key
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/** For its owner alone, and durable before anything is linked with it. */
async function writeKey(path: string, key: string): Promise<void> {
  const temporary = `${path}.tmp`
  await rm(temporary, { force: true })
  const file = await open(temporary, 'wx', privateFile)
  try {
    await file.writeFile(`${key}\n`)
    await file.sync()
  } finally {
    await file.close()
  }
  await rename(temporary, path)
}
