import { join } from 'node:path'
import { isRuntimeError, type RuntimeError } from '../../core/errors.ts'
import type { Tools } from './disk.ts'
import { Journal } from './journal.ts'
import { encodeName } from './names.ts'
import { ResidueFiles } from './residues.ts'
import { WordIndex } from './words.ts'
import { unavailable } from './writer.ts'

/** Journals in memory, and the entries and facts that they have in all. */
export const capacity = { journals: 2_000, items: 1_000_000 }

/** The journals in use: a bounded number in memory, loaded when someone asks for them. */
export class Chats {
  /** Journals with entries that their files do not have yet, and files that are not synced yet. */
  readonly waiting = new Set<Journal>()
  readonly unsynced = new Set<Journal>()
  /** Threads that were erased while their folder may still be there. */
  readonly erased = new Set<string>()
  readonly residues: ResidueFiles
  readonly words: WordIndex
  readonly damaged = new Map<string, RuntimeError>()
  readonly #directory: string
  readonly #tools: Tools
  readonly #isLeased: (threadId: string) => boolean
  readonly #warm = new Map<string, Journal>()
  readonly #loading = new Map<string, Promise<Journal>>()

  constructor(directory: string, tools: Tools, isLeased: (threadId: string) => boolean) {
    this.#directory = directory
    this.residues = new ResidueFiles(join(directory, '../erased'), tools)
    this.words = new WordIndex((threadId) => this.folderOf(threadId), tools)
    this.#tools = tools
    this.#isLeased = isLeased
  }

  folderOf(threadId: string): string {
    return join(this.#directory, encodeName(threadId))
  }

  /** A new journal without a file. */
  create(threadId: string): Journal {
    const journal = new Journal(threadId, this.folderOf(threadId), this.#tools)
    this.#keep(journal)
    return journal
  }

  /** Journals in memory. */
  get size(): number {
    return this.#warm.size
  }

  peek(threadId: string): Journal | undefined {
    return this.#warm.get(threadId)
  }

  /** The journal of a thread that exists. Rejects with `thread_damaged`, from then on always. */
  async get(threadId: string): Promise<Journal> {
    const known = this.damaged.get(threadId)
    if (known) throw known
    const warm = this.#warm.get(threadId)
    if (warm) {
      this.#warm.delete(threadId) // the last used is the last to go
      this.#warm.set(threadId, warm)
      return warm
    }
    const loading = this.#loading.get(threadId) ?? this.#load(threadId)
    this.#loading.set(threadId, loading)
    return loading
  }

  /** The same before the log's part of it is known, which may be all of it. */
  async reopen(threadId: string): Promise<Journal> {
    const known = this.damaged.get(threadId)
    if (known) throw known
    const journal = new Journal(threadId, this.folderOf(threadId), this.#tools)
    await journal.load()
    this.#keep(journal)
    return journal
  }

  forget(threadId: string): void {
    this.words.forget(threadId)
    const journal = this.#warm.get(threadId)
    if (journal) this.waiting.delete(journal)
    this.#warm.delete(threadId)
    this.damaged.delete(threadId)
  }

  /** Lets nobody in any more. What its file has yet to get stays here until it has it. */
  close(threadId: string, error: unknown): void {
    if (isRuntimeError(error, 'thread_damaged')) this.damaged.set(threadId, error)
  }

  async #load(threadId: string): Promise<Journal> {
    const journal = new Journal(threadId, this.folderOf(threadId), this.#tools)
    try {
      await journal.load()
      journal.assertWhole()
      this.#keep(journal)
      return journal
    } catch (error) {
      this.close(threadId, error)
      throw isRuntimeError(error) ? error : unavailable(error)
    } finally {
      this.#loading.delete(threadId)
    }
  }

  #keep(journal: Journal) {
    this.#warm.set(journal.threadId, journal)
    let items = 0
    for (const one of this.#warm.values()) items += one.items
    let looked = 0
    for (const [threadId, old] of this.#warm) {
      const fits = this.#warm.size <= capacity.journals && items <= capacity.items
      if (fits || looked++ > 100) break
      if (old === journal || old.pins > 0 || old.waiting || this.#isLeased(threadId)) continue
      this.#warm.delete(threadId)
      items -= old.items
    }
  }
}
