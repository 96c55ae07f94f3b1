import { readFile, rename, unlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { makeDirectory } from './directory.ts'
import { privateFile } from './private.ts'

/** Small JSON files by key, for what must not be lost while its real home is away. */
export function fileSpool(directory: string) {
  const path = (key: string) => join(directory, `${encodeURIComponent(key).slice(0, 200)}.json`)
  return {
    async save(key: string, value: unknown): Promise<void> {
      makeDirectory(directory, 'HANDRAIL_SPOOL')
      await writeFile(`${path(key)}.tmp`, JSON.stringify(value), { flush: true, mode: privateFile })
      await rename(`${path(key)}.tmp`, path(key))
    },
    async find(key: string): Promise<unknown> {
      const text = await readFile(path(key), 'utf8').catch(() => undefined)
      return text === undefined ? undefined : JSON.parse(text)
    },
    async remove(key: string): Promise<void> {
      await unlink(path(key)).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== 'ENOENT') throw error // mostly there is none
      })
    },
  }
}
