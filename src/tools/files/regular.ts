import { constants, type Stats } from 'node:fs'
import { type FileHandle, lstat, open } from 'node:fs/promises'
import { type Folder, linkRefused } from './folder.ts'

export const largestFile = 1024 * 1024

const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants

/** What is there under this name, if anything; anything but a regular file is refused. */
export async function regularAt(folder: Folder, name: string): Promise<Stats | undefined> {
  try {
    const seen = await lstat(folder.at(name))
    refuseSpecial(seen)
    return seen
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/** All of a regular file's bytes. Looked at before opening, because opening a device can act,
 *  and again after, because it may have been swapped. */
export async function bytesAt(folder: Folder, name: string): Promise<Buffer> {
  refuseSpecial(await lstat(folder.at(name)))
  // O_NONBLOCK: opening a FIFO would wait for a writer for ever.
  const handle = await open(folder.at(name), O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
  try {
    const opened = await handle.stat()
    refuseSpecial(opened)
    if (opened.size > largestFile) throw tooLarge(opened.size)
    return await readUpTo(handle, largestFile)
  } finally {
    await handle.close()
  }
}

/** Undefined when the bytes are not UTF-8 text. */
export function textFrom(bytes: Buffer): string | undefined {
  if (bytes.includes(0)) return undefined
  try {
    // ignoreBOM keeps the mark: what is read is what is there.
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return undefined
  }
}

// The size a file claims is not what reading it gives: it may be growing.
async function readUpTo(handle: FileHandle, limit: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  for (let size = 0; ; ) {
    const { bytesRead, buffer } = await handle.read({ buffer: Buffer.alloc(65_536) })
    if (bytesRead === 0) return Buffer.concat(chunks)
    size += bytesRead
    if (size > limit) throw tooLarge(size)
    chunks.push(buffer.subarray(0, bytesRead))
  }
}

function refuseSpecial(stats: Stats) {
  if (stats.isSymbolicLink()) throw new Error(linkRefused)
  if (stats.isDirectory()) throw new Error('That is a folder, not a file.')
  if (!stats.isFile()) throw new Error('That is not a regular file.')
}

function tooLarge(size: number) {
  return new Error(`The file is too large: ${size} bytes, and the limit is ${largestFile}.`)
}
