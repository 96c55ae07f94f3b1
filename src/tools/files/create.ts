import { link, rename, rm } from 'node:fs/promises'
import { codeOf } from './problem.ts'

/** Codes of file systems that have no hard links. */
const noLinks = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK'])

/** Gives a finished temporary file its name. Throws EEXIST, and replaces nothing, if the name is taken. */
export async function createFrom(temporary: string, path: string): Promise<void> {
  try {
    await link(temporary, path)
  } catch (error) {
    if (!noLinks.has(codeOf(error) ?? '')) throw error
    return await rename(temporary, path)
  }
  await rm(temporary)
}
