import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { type Config, ConfigError } from '../config.ts'
import type { Entry } from '../core/entries.ts'
import { isMissing } from '../stores/file/disk.ts'
import { decodeEntry } from '../stores/file/entry-line.ts'
import { linesOf } from '../stores/file/lines.ts'
import { withStore } from './command.ts'

/** One thread, oldest entry first; `undefined` for what cannot be read. Held by nobody but the reader. */
export type Past = AsyncIterable<Entry | undefined>

const pageSize = 500

/**
 * Every thread of the store, one after the other, without taking it from a server that may be writing there:
 * of a directory the journals are read as they are. Changes nothing.
 */
export async function eachPast(
  config: Config,
  use: (thread: Past) => Promise<void>,
): Promise<void> {
  if (!config.database) return await eachJournal(config.data, use)
  await withStore(config, async (store) => {
    for await (const { threadId } of store.everyThread()) await use(pages(threadId, store))
  })
}

async function* pages(
  threadId: string,
  store: { read(threadId: string, range: object): Promise<Entry[]> },
): Past {
  for (let after = 0; ; ) {
    const page = await store.read(threadId, { after, limit: pageSize })
    yield* page
    if (page.length < pageSize) return
    after = page.at(-1)!.seq
  }
}

async function eachJournal(directory: string, use: (thread: Past) => Promise<void>): Promise<void> {
  const folders = await readdir(join(directory, 'chats')).catch((error: unknown) => {
    if (!isMissing(error)) throw error
    throw new ConfigError(`${directory} has no chats: set HANDRAIL_DATA to a server's directory.`)
  })
  for (const folder of folders) await use(journal(join(directory, 'chats', folder)))
}

async function* journal(folder: string): Past {
  for await (const { bytes, whole } of linesOf(join(folder, 'journal.ndjson'))) {
    const entry = decodeEntry(bytes)?.entry
    if (entry || whole) yield entry // else it is being written
  }
}
