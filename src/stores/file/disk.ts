import { constants, statSync } from 'node:fs'
import { type FileHandle, open, rename } from 'node:fs/promises'
import { dirname } from 'node:path'
import { privateFile } from '../../lib/private.ts'

/** The file operations that a failing or slow disk shows itself in; tests bring their own. */
export interface Disk {
  /** Writes all the bytes at a position. */
  write(file: FileHandle, bytes: Buffer, position: number, path: string): Promise<void>
  /** Returns when what was written will survive a loss of power. */
  sync(file: FileHandle, path: string): Promise<void>
  /** Both, for a file that was opened with `commits`. */
  commit(file: FileHandle, bytes: Buffer, position: number, path: string): Promise<void>
}

/**
 * A new file that is written to be durable, and whether each write is by itself: then committing is one
 * trip to the disk where it would be two, and in between the event loop may be busy for long. Linux
 * promises as much for such a write as for a sync; other systems promise less.
 */
const writesAreSyncs = process.platform === 'linux'
const { O_WRONLY, O_CREAT, O_TRUNC, O_DSYNC } = constants
export const commits = O_WRONLY | O_CREAT | O_TRUNC | (writesAreSyncs ? O_DSYNC : 0)

export const nodeDisk: Disk = {
  async write(file, bytes, position) {
    for (let done = 0; done < bytes.length; ) {
      const { bytesWritten } = await file.write(bytes, done, bytes.length - done, position + done)
      done += bytesWritten
    }
  },
  sync: (file) => file.datasync(),
  async commit(file, bytes, position, path) {
    await nodeDisk.write(file, bytes, position, path)
    if (!writesAreSyncs) await nodeDisk.sync(file, path)
  },
}

/** There was no room, and nothing else is wrong: once there is, it can be tried again. */
export const isFull = (error: unknown): boolean =>
  ['ENOSPC', 'EDQUOT', 'EFBIG'].includes((error as NodeJS.ErrnoException)?.code ?? '')

export interface Log {
  info(details: object, message: string): void
  warn(details: object, message: string): void
  error(details: object, message: string): void
}

/** What every part of the file store is given. */
export interface Tools {
  disk: Disk
  log: Log
  /** Dies at a named point, in tests. */
  crash(point: string): void
}

/** A file's name is durable when its directory is. */
export async function syncDirectory(path: string, disk: Disk): Promise<void> {
  const file = await open(path, 'r')
  try {
    await disk.sync(file, path)
  } finally {
    await file.close()
  }
}

/** The old content or the new one, never something between. */
export async function replaceFile(
  path: string,
  parts: Iterable<Buffer>,
  disk: Disk,
  beforeRename = () => {},
): Promise<number> {
  const temporary = `${path}.tmp`
  const file = await open(temporary, 'w', privateFile)
  let end = 0
  try {
    for (const part of parts) {
      await disk.write(file, part, end, temporary)
      end += part.length
    }
    await disk.sync(file, temporary)
  } finally {
    await file.close()
  }
  beforeRename()
  await rename(temporary, path)
  await syncDirectory(dirname(path), disk)
  return end
}

/** A file of ours, by what it is and not by its name, and the name that it must have. */
export interface Place {
  path: string
  dev: number
  ino: number
}

export const placeOf = (path: string, { dev, ino }: Omit<Place, 'path'>): Place => ({
  path,
  dev,
  ino,
})

/** Whether that name still leads to it. Not a trip to the disk: what we have open the system knows by heart. */
export function isInPlace({ path, dev, ino }: Place): boolean {
  const now = statSync(path, { throwIfNoEntry: false })
  return now?.dev === dev && now.ino === ino
}

export function isMissing(error: unknown): boolean {
  return (error as NodeJS.ErrnoException)?.code === 'ENOENT'
}

/** Runs `work` on every item, a few at a time: many small files, few threads to serve them. */
export async function forEachOf<T>(
  items: Iterable<T>,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const rest = items[Symbol.iterator]()
  const worker = async () => {
    for (let next = rest.next(); !next.done; next = rest.next()) await work(next.value)
  }
  const results = await Promise.allSettled(Array.from({ length: 4 }, worker))
  for (const result of results) if (result.status === 'rejected') throw result.reason
}
