import { writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { saidIn } from '../../core/said.ts'
import { privateFile } from '../../lib/private.ts'
import { keysOf } from '../../lib/words.ts'
import type { Tools } from './disk.ts'
import { decodeEntry } from './entry-line.ts'
import { frame, linesOf, unframe } from './lines.ts'

/** The words of one journal, as far as its file has been looked at. */
export interface Words {
  /** Bytes of the file. */
  size: number
  /** When the newest of the texts was said. */
  newest: number
  /** A number for each word, in order. */
  keys: Int32Array
}

export const wordsName = 'words.json'
export const journalName = 'journal.ndjson'

/** Words of all chats that are held in memory, and bytes of a journal that are worth writing them down. */
const most = { keys: 8 << 20, unsaved: 64 << 10 }
const none: Words = { size: 0, newest: Number.NEGATIVE_INFINITY, keys: new Int32Array() }

/**
 * Which words are in which journal. Nobody writes it but whoever looks for something: what is missing or
 * behind is made from the journal, so it needs no sync, and appends do not know of it.
 */
export class WordIndex {
  readonly #tools: Tools
  readonly #folderOf: (threadId: string) => string
  readonly #known = new Map<string, Words>()
  #keys = 0
  /** Those that have all of their file. */
  readonly #fresh = new Set<string>()

  constructor(folderOf: (threadId: string) => string, tools: Tools) {
    this.#folderOf = folderOf
    this.#tools = tools
  }

  /** Its journal has grown. */
  grown(threadId: string): void {
    this.#fresh.delete(threadId)
  }

  forget(threadId: string): void {
    this.#fresh.delete(threadId)
    this.#set(threadId, undefined)
  }

  /** Without looking, if nothing has changed. */
  peek(threadId: string): Words | undefined {
    return this.#fresh.has(threadId) ? this.#known.get(threadId) : undefined
  }

  /** The words of the journal's file as it is now. */
  async look(threadId: string): Promise<Words> {
    const folder = this.#folderOf(threadId)
    // Before it is read: what is written or erased meanwhile takes it away again.
    this.#fresh.add(threadId)
    try {
      const before = this.#known.get(threadId) ?? (await this.#load(folder))
      const words = await extend(before, join(folder, journalName))
      if (!this.#fresh.has(threadId)) return words
      this.#set(threadId, words)
      // At once: when the folder is being removed, nothing must come into it.
      if (words.size - before.size >= most.unsaved) this.#save(folder, words)
      return words
    } catch (error) {
      this.#fresh.delete(threadId)
      throw error
    }
  }

  #set(threadId: string, words: Words | undefined): void {
    this.#keys -= this.#known.get(threadId)?.keys.length ?? 0
    this.#known.delete(threadId)
    if (!words) return
    this.#known.set(threadId, words)
    this.#keys += words.keys.length
    for (const [oldest] of this.#known) {
      if (this.#keys <= most.keys || oldest === threadId) break
      this.forget(oldest)
    }
  }

  async #load(folder: string): Promise<Words> {
    const content = await readFile(join(folder, wordsName)).catch(() => undefined)
    const payload = content && unframe(content.subarray(0, -1))
    if (!payload) return none // not there, or half of it
    const { size, newest, keys } = JSON.parse(payload.toString())
    const bytes = new Uint8Array(Buffer.from(keys, 'base64'))
    return { size, newest, keys: new Int32Array(bytes.buffer) }
  }

  #save(folder: string, { size, newest, keys }: Words): void {
    const bytes = Buffer.from(keys.buffer, keys.byteOffset, keys.byteLength)
    try {
      const saved = { size, newest, keys: bytes.toString('base64') }
      writeFileSync(join(folder, wordsName), frame(JSON.stringify(saved)), {
        mode: privateFile,
      })
    } catch (error) {
      this.#tools.log.warn({ err: error, folder }, 'could not write down the words of a chat')
    }
  }
}

/** What is known of the beginning of a file, and what is behind it. */
async function extend(before: Words, path: string): Promise<Words> {
  let { size, newest } = before
  const added = new Set<number>()
  for await (const { bytes, offset, whole } of linesOf(path, size)) {
    if (!whole) break // being written
    size = offset + bytes.length + 1
    if (!bytes.includes(message)) continue
    const entry = decodeEntry(bytes)?.entry
    const said = entry && saidIn(entry)
    if (!said) continue
    newest = Math.max(newest, entry.at)
    for (const key of keysOf(said.text)) added.add(key)
  }
  if (size === before.size) return before
  for (const key of before.keys) added.add(key)
  return { size, newest, keys: Int32Array.from(added).sort() }
}

/** What a line without has no text. */
export const message = '"kind":"message.added"'
