import { isAbsolute, resolve } from 'node:path'
import { type ParseArgsConfig, parseArgs } from 'node:util'
import { type Config, ConfigError } from '../config.ts'
import { systemClock } from '../lib/clock.ts'
import { makeDirectory } from '../lib/directory.ts'
import { refuseEmpty } from '../open-reader.ts'
import { openStore } from '../open-store.ts'
import { fileStore } from '../stores/file/store.ts'
import type { Whole } from './transfer.ts'

/** What a command is given: the environment, its own words, and where to say what it did. */
export interface Command {
  config: Config
  args: string[]
  say(line: string): void
  /** Said over and over in one place, for whoever watches. */
  progress(line: string): void
}

/** Says nothing by itself; a command tells what there is to tell. */
const log = {
  info() {},
  warn: (_: object, message: string) => void process.stderr.write(`${message}\n`),
  error: (_: object, message: string) => void process.stderr.write(`${message}\n`),
}

/** The store of the environment, for as long as it is used. Whole threads may take their time. */
export async function withStore<T>(config: Config, use: (store: Whole) => Promise<T>): Promise<T> {
  const database = config.database && { ...config.database, statementLimit: 300_000 }
  return await using(await openStore({ ...config, database }, { clock: systemClock, log }), use)
}

/** The same where there must be one: a command that looks for threads makes no store of its own. */
export async function withOldStore<T>(
  config: Config,
  use: (store: Whole) => Promise<T>,
): Promise<T> {
  refuseEmpty(config)
  return await withStore(config, use)
}

/** The same for commands that erase: the view that servers keep of an erased thread leaves Redis too. */
export async function withErasableStore<T>(
  config: Config,
  use: (store: Whole) => Promise<T>,
): Promise<T> {
  const { redis: url } = config
  if (url === undefined) return await withOldStore(config, use)
  const { redisCache } = await import('../cache/redis/cache.ts')
  const cache = await redisCache({ url, log })
  const erasing = (store: Whole): Whole => ({
    ...store,
    async erase(threadId, ...rest) {
      await store.erase(threadId, ...rest)
      await cache.delete(threadId)
    },
  })
  try {
    return await withOldStore(config, (store) => use(erasing(store)))
  } finally {
    await cache.close()
  }
}

/** The directory that a command names, which is not its store. */
export function directoryOf({ config, args }: Command): string {
  const [given, ...rest] = args
  if (given === undefined || rest.length > 0) throw new ConfigError('Name one directory.')
  const directory = isAbsolute(given) ? given : resolve(given)
  if (!config.database && directory === config.data)
    throw new ConfigError(
      'This directory is the store itself: set DATABASE_URL, or HANDRAIL_DATA to another one.',
    )
  return directory
}

export async function withDirectory<T>(
  directory: string,
  use: (store: Whole) => Promise<T>,
): Promise<T> {
  makeDirectory(directory, 'The directory')
  return await using(await fileStore({ directory, clock: systemClock, log }), use)
}

async function using<T>(store: Whole, use: (store: Whole) => Promise<T>): Promise<T> {
  try {
    return await use(store)
  } finally {
    await store.close()
  }
}

const units = { m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 }

/** `90d` in milliseconds. */
export function ageOf(text: string): number | undefined {
  const match = /^(\d+)([mhdw])$/.exec(text)
  return match ? Number(match[1]) * units[match[2] as keyof typeof units] : undefined
}

type Options = NonNullable<ParseArgsConfig['options']>
type Words<T extends Options> = ReturnType<
  typeof parseArgs<{ args: string[]; options: T; allowPositionals: true }>
>

/** A command's own words; what is not one of them is told in a sentence. */
export function words<const T extends Options>({ args }: Command, options: T): Words<T> {
  try {
    return parseArgs({ args, options, allowPositionals: true })
  } catch (error) {
    throw new ConfigError((error as Error).message)
  }
}

/** Beside what is said, which may go to a file. */
export const complain = (line: string): void => void process.stderr.write(`${line}\n`)

export const placeOf = ({ config }: Command): string =>
  config.database ? `Postgres (schema ${config.database.schema})` : config.data

export const counted = (n: number, what: string): string =>
  `${n.toLocaleString('en')} ${what}${n === 1 ? '' : 's'}`
