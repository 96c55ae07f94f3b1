import { open, readFile } from 'node:fs/promises'
import { isMissing, replaceFile, type Tools } from './disk.ts'
import { frame, unframe } from './lines.ts'
import type { IndexRecord, Tables } from './tables.ts'

const chunkBytes = 1 << 20
/** Up to here rewriting is cheap enough to do it at every erasure, so that no title stays behind. */
const fewRows = 5_000

/**
 * The tables on disk: one line per thread and change, the last one counts. It is never ahead of what
 * is durable, and may be behind: the commit log has the rest.
 */
export class IndexFile {
  readonly #path: string
  readonly #tools: Tools
  #lines = 0
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
    this.#mustRewrite = this.#end < content.length
    return true
  }

  /** Writes the dirty rows, and returns when they are durable. `thorough`: leave no garbage. */
  async save(tables: Tables, thorough: boolean): Promise<void> {
    const ids = [...tables.dirty]
    tables.dirty.clear()
    const erased = ids.some((id) => !tables.rows.has(id))
    const garbage = this.#lines + ids.length - tables.rows.size
    const clean = erased && (thorough || tables.rows.size <= fewRows)
    try {
      if (this.#mustRewrite || clean || garbage > tables.rows.size + 100)
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
    let bad = false
    for (let from = 0; from < content.length; ) {
      const newline = content.indexOf(10, from)
      const payload = newline === -1 ? undefined : unframe(content.subarray(from, newline))
      if (payload && bad) {
        this.#tools.log.warn({ path: this.#path }, 'the index is damaged and will be made anew')
        return undefined
      }
      if (payload) {
        const record = JSON.parse(payload.toString()) as IndexRecord
        records.set(record.id, record)
        this.#lines++
        this.#end = newline + 1
      } else bad = true
      if (newline === -1) break
      from = newline + 1
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
    this.#lines += ids.length
  }

  async #rewrite(tables: Tables) {
    const ids = [...tables.rows.keys()]
    const { disk, crash } = this.#tools
    const beforeRename = () => crash('index.before-rename')
    this.#end = await replaceFile(this.#path, partsOf(tables, ids), disk, beforeRename)
    this.#lines = ids.length
    this.#mustRewrite = false
  }
}

function* partsOf(tables: Tables, ids: string[]): Generator<Buffer> {
  let lines: Buffer[] = []
  let size = 0
  for (const id of ids) {
    const line = frame(JSON.stringify(tables.record(id)))
    lines.push(line)
    size += line.length
    if (size < chunkBytes) continue
    yield Buffer.concat(lines)
    lines = []
    size = 0
  }
  if (size > 0) yield Buffer.concat(lines)
}
