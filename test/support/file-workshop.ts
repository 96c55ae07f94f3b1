import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach } from 'vitest'
import { systemClock } from '../../src/lib/clock.ts'
import { type FileStoreOptions, fileStore } from '../../src/stores/file/store.ts'

type Opened = Awaited<ReturnType<typeof fileStore>>

/** Directories and stores for one test file, gone after each test. */
export function workshop() {
  const directories: string[] = []
  const stores: Opened[] = []
  afterEach(async () => {
    for (const store of stores.splice(0)) await store.close()
    for (const path of directories.splice(0)) await rm(path, { recursive: true, force: true })
  })

  async function directory(): Promise<string> {
    const path = await mkdtemp(join(tmpdir(), 'handrail-'))
    directories.push(path)
    return path
  }

  return {
    directory,
    /** Opens a store that moves nothing to its journals unless it is told to. */
    async open(path: string, options: Partial<FileStoreOptions> = {}): Promise<Opened> {
      const store = await fileStore({
        ...{ directory: path, clock: systemClock, syncEvery: 600_000 },
        ...options,
      })
      stores.push(store)
      return store
    },
    /** What a killed process would leave at this moment. */
    async corpse(path: string): Promise<string> {
      const copy = await directory()
      const filter = (source: string) => !source.endsWith('.sock')
      await cp(path, copy, { recursive: true, filter })
      return copy
    },
  }
}

/** No test here pulls the plug, and some open a store hundreds of times. */
export const unsynced = { sync: async () => {} }
