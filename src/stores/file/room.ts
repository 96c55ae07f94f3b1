import { open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { privateFile } from '../../lib/private.ts'
import { commits, type Disk } from './disk.ts'

/** More than most transitions have. */
const enough = Buffer.alloc(64 << 10)

/** Commits a file that nobody needs, as the log would be, and removes it. Rejects when there is no room. */
export async function tryRoom(directory: string, disk: Disk): Promise<void> {
  const path = join(directory, 'room.tmp')
  const file = await open(path, commits, privateFile)
  try {
    await disk.commit(file, enough, 0, path)
  } finally {
    await file.close()
    await rm(path, { force: true })
  }
}
