import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'
import { type Config, ConfigError } from '../config.ts'
import type { Reader } from '../core/store.ts'
import { openReader } from '../open-reader.ts'

export async function withReader<T>(
  config: Config,
  use: (reader: Reader) => Promise<T>,
): Promise<T> {
  const reader = await openReader(config)
  try {
    return await use(reader)
  } finally {
    await reader.close()
  }
}

/** The lines of a text file that are not empty. */
export async function* linesIn(path: string): AsyncGenerator<string> {
  const input = createReadStream(path, 'utf8')
  try {
    for await (const line of createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY }))
      if (line.trim() !== '') yield line
  } catch (error) {
    throw new ConfigError(`${path} cannot be read: ${(error as Error).message}`)
  } finally {
    input.destroy()
  }
}
