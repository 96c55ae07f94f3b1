import { rm } from 'node:fs/promises'
import type { Chats } from './chats.ts'
import type { Describer } from './describe.ts'
import { forEachOf, isMissing, syncDirectory, type Tools } from './disk.ts'
import type { IndexFile } from './index-file.ts'
import type { Journal } from './journal.ts'
import type { CommitLog } from './log.ts'
import type { Tables } from './tables.ts'

interface KeeperOptions {
  tools: Tools
  chatsDirectory: string
  chats: Chats
  tables: Tables
  index: IndexFile
  commitLog: CommitLog
  describer: Describer
}

/**
 * Moves what is durable in the commit log to where it will stay: entries to their journals, rows to
 * the index. A segment goes only when all of it has arrived, so every step may fail or be cut off.
 */
export class Keeper {
  readonly #options: KeeperOptions
  #last: Promise<void> = Promise.resolve()
  /** Chats were made or removed since their directory was synced. */
  #foldersChanged = false

  constructor(options: KeeperOptions) {
    this.#options = options
  }

  /** Writes the journals, without waiting for the disk. */
  flush(): Promise<void> {
    return this.#inTurn(() => this.#flush())
  }

  /** Makes journals and index durable and drops the segments that are no longer needed. */
  checkpoint(): Promise<void> {
    return this.#inTurn(async () => {
      const { tools, chats, tables, index, commitLog, chatsDirectory } = this.#options
      const segments = commitLog.old.slice()
      await this.#flush()
      await forEachOf([...chats.unsynced], (journal) => this.#sync(journal))
      if (this.#foldersChanged) await syncDirectory(chatsDirectory, tools.disk)
      this.#foldersChanged = false
      await index.save(tables)
      tools.crash('segment.before-drop')
      await commitLog.drop(segments)
    })
  }

  /** Returns when what has begun has ended, well or not. */
  async idle(): Promise<void> {
    await this.#last
  }

  #inTurn<T>(work: () => Promise<T>): Promise<void> {
    const run = this.#last.then(work)
    this.#last = run.then(
      () => {},
      () => {},
    )
    return run.then(() => {})
  }

  /** The first failure is thrown after all were tried. */
  async #flush(): Promise<void> {
    const { tools, chats, describer } = this.#options
    await chats.residues.write() // before what they are of is gone
    for (const threadId of [...chats.erased]) {
      this.#foldersChanged = true
      await describer.pause()
      await rm(chats.folderOf(threadId), { recursive: true, force: true })
      chats.erased.delete(threadId)
    }
    let failure: unknown
    await forEachOf([...chats.waiting], async (journal) => {
      if (!chats.waiting.has(journal)) return // erased since
      // Made anew since: its folder is still to be removed, and it would go with it.
      if (chats.erased.has(journal.threadId)) return
      try {
        const runIds = await journal.flush(() => chats.words.grown(journal.threadId))
        if (!journal.waiting) chats.waiting.delete(journal)
        chats.unsynced.add(journal)
        describer.add(journal.threadId, runIds)
      } catch (error) {
        failure ??= error
      }
      tools.crash('journal.partial')
    })
    if (failure) throw failure
  }

  async #sync(journal: Journal): Promise<void> {
    const { chats } = this.#options
    chats.unsynced.delete(journal)
    try {
      if (await journal.sync()) this.#foldersChanged = true
    } catch (error) {
      if (isMissing(error) && chats.peek(journal.threadId) !== journal) return // erased since
      chats.unsynced.add(journal)
      throw error
    }
  }
}
