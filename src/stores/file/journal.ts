import { constants } from 'node:fs'
import { access, mkdir, open, truncate } from 'node:fs/promises'
import { join } from 'node:path'
import type { Entry } from '../../core/entries.ts'
import { RuntimeError } from '../../core/errors.ts'
import type { Kept, Marks } from '../../core/store.ts'
import { privateDirectory, privateFile } from '../../lib/private.ts'
import { isMissing, syncDirectory, type Tools } from './disk.ts'
import { decodeEntry, endsTransition } from './entry-line.ts'
import { linesOf } from './lines.ts'
import { journalName } from './words.ts'

interface Held {
  line: Buffer
  runId: string | undefined
}

/** Lines of the log that no longer fit this chat's journal; while the file is there, it is closed. */
export const setAsideName = 'damaged.ndjson'

/** One thread's entries: in its file, or still in memory because the file has yet to be written. */
export class Journal {
  readonly threadId: string
  readonly folder: string
  readonly facts = new Map<string, string>()
  /** Operations under way that need this journal to stay in memory. */
  pins = 0
  readonly #path: string
  readonly #tools: Tools
  /** Where each entry's line begins; seqs have no gaps, so seq 1 is at 0. */
  readonly #offsets: number[] = []
  #held: Held[] = []
  #end = 0
  /** A write failed and may have left something behind the end. */
  #uncut = false
  /** How the file shows that it lacks its end. */
  #lacking: string | undefined
  #isNew = true

  constructor(threadId: string, folder: string, tools: Tools) {
    this.threadId = threadId
    this.folder = folder
    this.#path = join(folder, journalName)
    this.#tools = tools
  }

  get lastSeq(): number {
    return this.#offsets.length + this.#held.length
  }

  /** Entries and facts that are held in memory, whatever they say. */
  get items(): number {
    return this.lastSeq + this.facts.size
  }

  /** The lines that the file does not have yet. */
  get held(): Buffer[] {
    return this.#held.map(({ line }) => line)
  }

  get waiting(): boolean {
    return this.#held.length > 0
  }

  /** False: the file lacks its end. Only the log can have it (decision 35). */
  get isWhole(): boolean {
    return this.#lacking === undefined
  }

  /** Reads the file from its beginning. Damage before good lines throws; what is after the last one waits. */
  async load(visit?: (entry: Entry, marks: Marks) => void): Promise<this> {
    if (await exists(join(this.folder, setAsideName))) throw this.#damaged('was closed before')
    let broken: number | undefined
    let unended = false
    let last: Kept | undefined
    for await (const { bytes, offset, whole } of linesOf(this.#path)) {
      this.#isNew = false
      const read = decodeEntry(bytes)
      if (!read) broken ??= offset
      else if (broken !== undefined) throw this.#damaged(`has a bad line at byte ${broken}`)
      else if (read.entry.seq !== this.lastSeq + 1) throw this.#damaged('misses an entry')
      else {
        this.#offsets.push(offset)
        this.#end = offset + bytes.length + 1
        if (read.marks) this.#mark(read.marks)
        visit?.(read.entry, read.marks ?? {})
        unended = !whole
        last = read
      }
    }
    if (unended) await this.#write(Buffer.from('\n'), this.#end - 1)
    if (broken !== undefined) this.#lacking = `has an unfinished line at byte ${broken}`
    else if (last && !endsTransition(last)) this.#lacking = 'ends inside a transition'
    return this
  }

  /** Throws when the file lacks its end, or all of it: what was in a journal has been acknowledged. */
  assertWhole(): void {
    if (this.#lacking !== undefined) throw this.#damaged(this.#lacking)
    if (this.lastSeq === 0) throw this.#damaged('is not there')
  }

  /** The log has what the file lacks, and it is held: what is left of it in the file goes. */
  async cut(): Promise<void> {
    if (this.isWhole) return
    await truncate(this.#path, this.#end)
    this.#tools.log.info({ path: this.#path }, 'cut the unfinished end of a journal')
    this.#lacking = undefined
  }

  /** Takes in an entry that is durable in the commit log. */
  push(line: Buffer, marks: Marks | undefined, runId: string | undefined): void {
    this.#held.push({ line, runId })
    if (marks) this.#mark(marks)
  }

  /** Ends after the line with which there are this many bytes. */
  async dump(after: number, limit: number, most = Number.POSITIVE_INFINITY): Promise<Kept[]> {
    const from = Math.max(0, after)
    const begins = this.#offsets[from] ?? this.#end
    const next = (at: number) => this.#offsets[at + 1] ?? this.#end
    let to = from
    while (to < this.#offsets.length && to < from + limit) if (next(to++) - begins >= most) break
    const inFile = this.#offsets.slice(from, to)
    const stop = this.#offsets[from + inFile.length] ?? this.#end
    const skip = Math.max(0, from - this.#offsets.length)
    let size = stop - begins
    const rest = size >= most ? [] : this.#held.slice(skip, skip + limit - inFile.length)
    const full = rest.findIndex(({ line }) => {
      size += line.length
      return size >= most
    })
    const held = full < 0 ? rest : rest.slice(0, full + 1)
    const lines = inFile.length > 0 ? await this.#slices(inFile, stop) : []
    return [...lines, ...held.map(({ line }) => line)].map((line) => {
      const read = decodeEntry(line)
      if (!read) throw this.#damaged('changed while it was in use')
      return read
    })
  }

  /** Writes what is held to the file; the runs it belongs to. Safe to try again when it fails. `grown` is
   *  called in the moment in which it is no longer held. */
  async flush(grown: () => void): Promise<string[]> {
    const held = this.#held.slice()
    if (this.#end === 0) await mkdir(this.folder, { recursive: true, mode: privateDirectory })
    await this.#write(Buffer.concat(held.flatMap(({ line }) => [line, lineEnd])), this.#end)
    for (const { line } of held) {
      this.#offsets.push(this.#end)
      this.#end += line.length + 1
    }
    this.#held = this.#held.slice(held.length)
    grown()
    return [...new Set(held.flatMap(({ runId }) => runId ?? []))]
  }

  /** Makes the file durable. True when its folder was new: the folder's own name is not yet. */
  async sync(): Promise<boolean> {
    const { disk } = this.#tools
    const file = await open(this.#path, 'r+')
    try {
      await disk.sync(file, this.#path)
    } finally {
      await file.close()
    }
    const isNew = this.#isNew
    if (isNew) await syncDirectory(this.folder, disk)
    this.#isNew = false
    return isNew
  }

  #mark({ facts }: Marks) {
    for (const [fact, value] of Object.entries(facts ?? {}))
      value === null ? this.facts.delete(fact) : this.facts.set(fact, value)
  }

  async #write(bytes: Buffer, position: number) {
    const file = await open(this.#path, constants.O_RDWR | constants.O_CREAT, privateFile)
    try {
      if (this.#uncut) await file.truncate(position)
      this.#uncut = true // until the whole write has succeeded
      await this.#tools.disk.write(file, bytes, position, this.#path)
      this.#uncut = false
    } finally {
      await file.close()
    }
  }

  async #slices(starts: number[], stop: number): Promise<Buffer[]> {
    const base = starts[0]!
    const bytes = Buffer.allocUnsafe(stop - base)
    const file = await open(this.#path, 'r')
    try {
      for (let done = 0; done < bytes.length; ) {
        const { bytesRead } = await file.read(bytes, done, bytes.length - done, base + done)
        if (bytesRead === 0) throw this.#damaged('is shorter than it was')
        done += bytesRead
      }
    } finally {
      await file.close()
    }
    return starts.map((start, n) =>
      bytes.subarray(start - base, (starts[n + 1] ?? stop) - base - 1),
    )
  }

  #damaged(what: string) {
    this.#tools.log.error({ threadId: this.threadId, path: this.#path }, `the journal ${what}`)
    return new RuntimeError('thread_damaged', undefined, {
      cause: new Error(`${this.#path} ${what}`),
    })
  }
}

const lineEnd = Buffer.from('\n')

async function exists(path: string): Promise<boolean> {
  try {
    await access(path)
    return true
  } catch (error) {
    if (isMissing(error)) return false
    throw error
  }
}
