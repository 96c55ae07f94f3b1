import { type FileHandle, open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { RuntimeError } from '../../core/errors.ts'
import type { Residue } from '../../core/store.ts'
import { privateFile } from '../../lib/private.ts'
import { commits, type Place, placeOf, syncDirectory, type Tools } from './disk.ts'
import { frame } from './lines.ts'

export const segmentPath = (directory: string, n: number) => join(directory, `${n}.ndjson`)

/** The contents of a log line after its place; see `read-log.ts` for the way back. */
export function transitionRecord(threadId: string, lines: readonly Buffer[]): Buffer {
  const sizes = lines.map((line) => line.length)
  const head = `"thread":${JSON.stringify(threadId)},"sizes":[${sizes}],"entries":[`
  const entries = lines.flatMap((line, n) => (n > 0 ? [comma, line] : [line]))
  return Buffer.concat([Buffer.from(head), ...entries, Buffer.from(']}')])
}

export const eraseRecord = (threadId: string, residue?: Residue) =>
  Buffer.from(JSON.stringify({ erase: threadId, residue }).slice(1))
export const epochRecord = (epoch: number) => Buffer.from(`"epoch":${epoch}}`)

const comma = Buffer.from(',')

/** The commit log: what is in it is durable, in the order in which it happened. */
export class CommitLog {
  /** Segments that hold only what was committed before the current one began. */
  old: number[]
  readonly #directory: string
  readonly #tools: Tools
  #file: FileHandle | undefined
  #place: Place | undefined
  #number: number
  #end = 0
  #batch = 0
  /** Bytes of a write that failed are still behind the end. */
  #uncut = false

  constructor(directory: string, old: number[], tools: Tools) {
    this.#directory = directory
    this.#tools = tools
    this.old = old
    this.#number = Math.max(0, ...old)
  }

  /** Of the segment that is written to. */
  get place(): Place | undefined {
    return this.#place
  }

  get size(): number {
    return this.#end
  }

  /** Whether anything was committed since the segment began. */
  get used(): boolean {
    return this.#batch > 1
  }

  /** Begins the next segment. Its first line is the epoch, which so outlives the older segments. */
  async rotate(epoch: number): Promise<void> {
    if (this.#file && this.#uncut) await this.#cut(this.#file)
    const number = this.#number + 1
    const path = segmentPath(this.#directory, number)
    const file = await open(path, commits, privateFile)
    const header = lineOf(epochRecord(epoch), 0, 0, 1)
    let place: Place
    try {
      place = placeOf(path, await file.stat())
      await this.#tools.disk.commit(file, header, 0, path)
      await syncDirectory(this.#directory, this.#tools.disk)
    } catch (error) {
      await file.close()
      await rm(path, { force: true }).catch(() => {})
      throw error
    }
    const previous = this.#file
    if (previous) this.old.push(this.#number)
    this.#file = file
    this.#place = place
    this.#number = number
    this.#end = header.length
    this.#batch = 1
    this.#uncut = false
    await previous?.close()
  }

  /** One trip to the disk for all of them. When it rejects, none of them is part of the log. */
  async write(records: readonly Buffer[]): Promise<void> {
    const { disk, crash } = this.#tools
    const file = this.#file!
    const path = segmentPath(this.#directory, this.#number)
    const lines = records.map((record, n) => lineOf(record, this.#batch, n, records.length))
    const bytes = Buffer.concat(lines)
    if (this.#uncut) await this.#cut(file)
    crash('log.before-commit')
    try {
      await disk.commit(file, bytes, this.#end, path)
    } catch (error) {
      this.#uncut = true
      // Tried again before the next write. A process that dies before would find it in the log.
      await this.#cut(file).catch(() => {
        throw new RuntimeError('outcome_unknown', undefined, { cause: error })
      })
      throw error
    }
    crash('log.after-commit')
    this.#end += bytes.length
    this.#batch++
  }

  /** Forgets segments whose contents are in the journals and the index. */
  async drop(segments: readonly number[]): Promise<void> {
    // The oldest first: what is left after a crash must be the end of the story, without holes.
    for (const number of segments) {
      await rm(segmentPath(this.#directory, number), { force: true })
      this.old = this.old.filter((other) => other !== number)
    }
  }

  async close(): Promise<void> {
    await this.#file?.close()
  }

  async #cut(file: FileHandle): Promise<void> {
    await file.truncate(this.#end)
    this.#uncut = false
  }
}

/** `at` is the batch, the place in it and its length: how a reader tells a torn batch from damage. */
function lineOf(record: Buffer, batch: number, n: number, length: number): Buffer {
  return frame(Buffer.concat([Buffer.from(`{"at":[${batch},${n},${length}],`), record]))
}
