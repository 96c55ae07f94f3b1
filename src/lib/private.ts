import { chmod, lstat, stat } from 'node:fs/promises'

/** Modes of directories and files that only the user of the server may read. */
export const privateDirectory = 0o700
export const privateFile = 0o600

const forOthers = 0o077

/** Removes all rights of other users from a path that the server made. Leaves links and paths of others alone. */
export async function makePrivate(path: string): Promise<void> {
  const stats = await lstat(path).catch(missing)
  if (!stats || stats.isSymbolicLink() || stats.uid !== process.getuid?.()) return
  if ((stats.mode & forOthers) !== 0) await chmod(path, stats.mode & 0o7777 & ~forOthers)
}

/** Whether other users have rights on a path that belongs to the user of the server. */
export async function isOpenToOthers(path: string): Promise<boolean> {
  const stats = await stat(path).catch(missing)
  if (!stats || stats.uid !== process.getuid?.()) return false
  return (stats.mode & forOthers) !== 0
}

function missing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT' && error.code !== 'ENOTDIR') throw error
  return undefined
}
