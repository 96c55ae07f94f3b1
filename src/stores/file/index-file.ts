import { open, readFile } from 'node:fs/promises'
import { isMissing, replaceFile, type Tools } from './disk.ts'
import { decodeRows, encodeRows } from './index-rows.ts'
import { frame, unframe } from './lines.ts'
import type { IndexRecord, Tables } from './tables.ts'

const rowsPerLine = 1_000

/**
 * The tables on disk: lines of many rows each, of which a thread's last one counts. It is never ahead
 * of what is durable, and may be behind: the commit log has the rest.
 */
export class IndexFile {
  readonly #path: string
  readonly #tools: Tools
  #written = 0
  #end = 0
  #mustRewrite = true

  constructor(path: string, tools: Tools) {
    this.#path = path
    this.#tools = tools
  }

  /** Fills the tables. False when there is nothing that can be relied on. */
  async load(tables: Tables): Promise<boolean> {
    const content = await readFile(this.#path).catch((error) => {
      if (isMissing(error)) return undefined
      throw error
    })
    const records = content && this.#parse(content)
    if (!records) return false
    for (const record of records.values()) tables.restore(record)
    // Older lines of a thread may be of one that was erased: nothing of it stays longer than one start.
    this.#mustRewrite = this.#end < content.length || this.#written > tables.rows.size
    return true
  }

  /**
   * Writes the dirty rows, and returns when they are durable. After an erasure all rows are written anew: the
   * title and the asks of an erased thread must not stay in the file.
   */
  async save(tables: Tables): Promise<void> {
    const ids = [...tables.dirty]
    const { erased } = tables
    tables.dirty.clear()
    tables.erased = false
    const garbage = this.#written + ids.length - tables.rows.size
    try {
      if (this.#mustRewrite || erased || garbage > tables.rows.size + 100)
        await this.#rewrite(tables)
      else if (ids.length > 0) await this.#append(tables, ids)
    } catch (error) {
      this.#mustRewrite = true // what the file has behind its end is unknown
      for (const id of ids) tables.dirty.add(id)
      throw error
    }
  }

  #parse(content: Buffer): Map<string, IndexRecord> | undefined {
    const records = new Map<string, IndexRecord>()
    for (let from = 0; from < content.length; from = this.#end) {
      const newline = content.indexOf(10, from)
      if (newline === -1) break // unfinished: the log has it
      const payload = unframe(content.subarray(from, newline))
      if (!payload) {
        this.#tools.log.warn({ path: this.#path }, 'the index is damaged and will be made anew')
        return undefined
      }
      for (const record of decodeRows(payload.toString())) {
        records.set(record.id, record)
        this.#written++
      }
      this.#end = newline + 1
    }
    return records
  }

  async #append(tables: Tables, ids: string[]) {
    const { disk } = this.#tools
    const file = await open(this.#path, 'r+')
    try {
      for (const part of partsOf(tables, ids)) {
        await disk.write(file, part, this.#end, this.#path)
        this.#end += part.length
      }
      await disk.sync(file, this.#path)
    } finally {
      await file.close()
    }
    this.#written += ids.length
  }

  async #rewrite(tables: Tables) {
    const ids = [...tables.rows.keys()]
    const { disk, crash } = this.#tools
    const beforeRename = () => crash('index.before-rename')
    this.#end = await replaceFile(this.#path, partsOf(tables, ids), disk, beforeRename)
    this.#written = ids.length
    this.#mustRewrite = false
  }
}

function* partsOf(tables: Tables, ids: string[]): Generator<Buffer> {
  for (let from = 0; from < ids.length; from += rowsPerLine) {
    const records = ids.slice(from, from + rowsPerLine).map((id) => tables.record(id))
    yield frame(encodeRows(records))
  }
}
