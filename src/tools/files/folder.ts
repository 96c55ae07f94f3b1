import { constants, existsSync } from 'node:fs'
import { type FileHandle, lstat, mkdir, open } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { privateDirectory } from '../../lib/private.ts'

/** An open folder inside the workspace. Whatever happens to its name, `at` stays inside it.
 *  Who opens it closes its handle. */
export interface Folder {
  readonly handle: FileHandle
  at(name: string): string
}

const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW } = constants

// Naming a file through its folder's descriptor is `openat` in all but name: no folder above it
// can be swapped for a link between a check and its use. Where there is no /proc the plain path
// has to do: links are refused all the same, but a program of the same user that swaps folders
// at the right moment is not stopped. No tool of ours can make a link.
const throughDescriptor = existsSync('/proc/self/fd')

/** Walks down from the root one name at a time, never through a link. */
export async function openFolder(root: string, names: readonly string[], create = false) {
  const top = resolve(root)
  if (create) await mkdir(top, { recursive: true, mode: privateDirectory })
  // The root itself may be a link: that is the operator's choice, not the model's.
  let folder = folderOf(await open(top, O_RDONLY | O_DIRECTORY), top)
  for (const name of names) {
    const above = folder
    try {
      folder = await step(above, name, create)
    } finally {
      await above.handle.close()
    }
  }
  return folder
}

async function step(folder: Folder, name: string, create: boolean): Promise<Folder> {
  const path = folder.at(name)
  if (create) await make(folder, path)
  const seen = await lstat(path)
  if (seen.isSymbolicLink()) throw new Error(linkRefused)
  const handle = await open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
  const opened = await handle.stat()
  if (opened.ino === seen.ino && opened.dev === seen.dev) return folderOf(handle, path)
  await handle.close()
  throw new Error('The folder changed while it was being opened. Try again.')
}

function folderOf(handle: FileHandle, path: string): Folder {
  const base = throughDescriptor ? `/proc/self/fd/${handle.fd}` : path
  return {
    handle,
    at: (name) => join(base, name),
  }
}

async function make(above: Folder, path: string) {
  try {
    await mkdir(path, privateDirectory)
    await above.handle.sync() // a file is only safe if the way to it is
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}

export const linkRefused = 'The path goes through a link. Links are not followed in the workspace.'
