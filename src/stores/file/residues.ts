import { mkdir, readdir, readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Residue } from '../../core/store.ts'
import { privateDirectory } from '../../lib/private.ts'
import { isMissing, replaceFile, syncDirectory, type Tools } from './disk.ts'
import { encodeName } from './names.ts'

/** What is left of erased threads: a file each, written from the log like everything else. */
export class ResidueFiles {
  readonly #directory: string
  readonly #tools: Tools
  /** In the log, and not in their files yet. */
  readonly #waiting = new Map<string, string>()

  constructor(directory: string, tools: Tools) {
    this.#directory = directory
    this.#tools = tools
  }

  add({ id, text }: Residue): void {
    this.#waiting.set(id, text)
  }

  all(): AsyncGenerator<Residue> {
    return residuesIn(this.#directory, new Map(this.#waiting))
  }

  /** Returns when those that wait are durable in their files. */
  async write(): Promise<void> {
    if (this.#waiting.size === 0) return
    const { disk } = this.#tools
    await mkdir(this.#directory, { recursive: true, mode: privateDirectory })
    await syncDirectory(dirname(this.#directory), disk)
    for (const [id, text] of [...this.#waiting]) {
      const content = Buffer.from(JSON.stringify({ id, text }))
      await replaceFile(join(this.#directory, `${encodeName(id)}.json`), [content], disk)
      this.#waiting.delete(id)
    }
  }
}

/** Those of a directory, and those that are still on their way there. */
export async function* residuesIn(
  directory: string,
  waiting: ReadonlyMap<string, string>,
): AsyncGenerator<Residue> {
  const found = new Map<string, () => Promise<Residue | undefined>>()
  for (const name of await namesIn(directory)) found.set(name, () => read(join(directory, name)))
  for (const [id, text] of waiting) found.set(`${encodeName(id)}.json`, async () => ({ id, text }))
  for (const name of [...found.keys()].sort()) {
    const residue = await found.get(name)!()
    // Unreadable is not gone: whoever looks must hear of it.
    yield residue ?? { id: name, text: '' }
  }
}

async function namesIn(directory: string): Promise<string[]> {
  try {
    return (await readdir(directory)).filter((name) => name.endsWith('.json'))
  } catch (error) {
    if (isMissing(error)) return []
    throw error
  }
}

async function read(path: string): Promise<Residue | undefined> {
  try {
    const { id, text } = JSON.parse(await readFile(path, 'utf8')) as Residue
    return typeof id === 'string' && typeof text === 'string' ? { id, text } : undefined
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}
