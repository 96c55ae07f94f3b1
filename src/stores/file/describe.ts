import { mkdir, rename, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { jsonSteps } from '../../lib/json-steps.ts'
import { privateDirectory, privateFile } from '../../lib/private.ts'
import { isMissing, type Log } from './disk.ts'
import { encodeName } from './names.ts'

/** A chat as files for people: relative path to JSON value. */
export type Describe = (threadId: string, runIds: string[]) => Promise<Record<string, unknown>>

/** Milliseconds a chat has to say more before its files are written: they are for people. */
const quiet = 1_000

/** Writes the files that people look at. They are never read back, so nothing waits for them. */
export class Describer {
  #describe: Describe | undefined
  readonly #log: Log
  readonly #folderOf: (threadId: string) => string | undefined
  readonly #due = new Map<string, Set<string>>()
  #running: Promise<void> | undefined
  readonly #hurry = new AbortController()
  #writing: Promise<void> | undefined

  /** `folderOf` answers for threads that exist. */
  constructor(log: Log, folderOf: (threadId: string) => string | undefined) {
    this.#log = log
    this.#folderOf = folderOf
  }

  /** `due` is what an earlier process may not have come to: its files are written first. */
  begin(describe: Describe, due: Map<string, Set<string>>): void {
    this.#describe = describe
    for (const [threadId, runIds] of due) this.add(threadId, [...runIds])
    due.clear()
  }

  add(threadId: string, runIds: readonly string[]): void {
    if (!this.#describe) return
    const due = this.#due.get(threadId) ?? new Set()
    for (const runId of runIds) due.add(runId)
    this.#due.set(threadId, due)
    this.#running ??= this.#run()
  }

  /** Returns when no file is being written; an erased thread's folder can then be removed. */
  async pause(): Promise<void> {
    await this.#writing
  }

  /** Returns when all is written, or has taken too long. */
  async drained(ms: number): Promise<void> {
    this.#hurry.abort()
    const late = new AbortController()
    await Promise.race([this.#running, sleep(ms, undefined, late).catch(() => {})])
    late.abort()
    this.#due.clear()
  }

  async #run(): Promise<void> {
    await sleep(quiet, undefined, { signal: this.#hurry.signal, ref: false }).catch(() => {})
    for (const [threadId, runIds] of this.#due) {
      this.#due.delete(threadId)
      if (this.#folderOf(threadId) === undefined) continue // erased since
      try {
        const files = (await this.#describe?.(threadId, [...runIds])) ?? {}
        for (const [path, value] of Object.entries(files)) {
          this.#writing = this.#write(threadId, path, value)
          await this.#writing
        }
      } catch (error) {
        this.#log.warn({ err: error, threadId }, 'could not write the readable files of a chat')
      }
    }
    this.#running = undefined
  }

  async #write(threadId: string, path: string, value: unknown): Promise<void> {
    const folder = this.#folderOf(threadId)
    if (folder === undefined) return
    const target = join(folder, relativePath(path))
    const write = () => writeFile(`${target}.tmp`, fileSteps(value), { mode: privateFile })
    await write().catch(async (error: unknown) => {
      if (!isMissing(error)) throw error
      await mkdir(dirname(target), { recursive: true, mode: privateDirectory }) // the first of its kind
      await write()
    })
    await rename(`${target}.tmp`, target)
  }
}

function* fileSteps(value: unknown) {
  yield* jsonSteps(value, 2)
  yield '\n'
}

function relativePath(path: string): string {
  if (path === 'chat.json') return path
  const id = /^interactions\/(.*)\.json$/s.exec(path)?.[1]
  if (id === undefined) throw new Error(`A chat's folder has no place for ${path}`)
  return join('interactions', `${encodeName(id)}.json`)
}
