import { accessSync, constants, existsSync, mkdirSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { ConfigError } from './config-error.ts'
import { privateDirectory } from './private.ts'

/**
 * Makes a directory that can be written to, or says in one sentence why it cannot be. Step by step:
 * Node's own way to make parents goes round for ever where a file system has no room for any (/proc).
 */
export function makeDirectory(path: string, named: string, mode = privateDirectory): void {
  const missing: string[] = []
  for (let at = path; !existsSync(at); at = dirname(at)) missing.unshift(at)
  try {
    for (const one of missing) make(one, mode)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    const why = code === 'ENOTDIR' ? 'a file is in the way' : code
    throw new ConfigError(`${named}: ${path} cannot be made (${why}). Name another directory.`)
  }
  refuseNoDirectory(path, named)
  try {
    accessSync(path, constants.W_OK | constants.X_OK)
  } catch {
    throw new ConfigError(
      `${named}: ${path} cannot be written to by this user. Change its rights, or name another directory.`,
    )
  }
}

function make(path: string, mode: number): void {
  try {
    mkdirSync(path, { mode })
  } catch (error) {
    // Somebody else may have made it in the same moment.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}

/** For one that is made when it is needed. */
export function refuseNoDirectory(path: string, named: string): void {
  if (existsSync(path) && !statSync(path).isDirectory())
    throw new ConfigError(`${named}: ${path} is a file. Name a directory.`)
}
