import { randomBytes } from 'node:crypto'
import { chmod, mkdtemp, readdir, rename, rm, stat, symlink } from 'node:fs/promises'
import { connect, createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { ConfigError } from '../../lib/config-error.ts'
import { privateFile } from '../../lib/private.ts'
import { isInPlace, isMissing, type Place, placeOf } from './disk.ts'

export interface Lock {
  place: Place
  release(): Promise<void>
}

const name = 'lock.sock'
const candidate = /^lock\.[0-9a-f]{8}\.sock$/

/**
 * Holds a directory by listening on a socket in it: the system lets go of it when the process
 * dies, however it dies, and nobody can mistake a reused pid for the holder.
 *
 * Taking it: listen under a name of one's own, look for others who do, look whether the lock is
 * answered, and only then move one's own socket into its place. Of two who come together each
 * is listening before it looks, so at least one sees the other and steps back.
 */
export async function lockDirectory(directory: string): Promise<Lock> {
  for (let attempt = 0; attempt < 20; attempt++) {
    const lock = await withShortPath(directory, (path) => attemptLock(directory, path))
    if (lock) return lock
    await sleep(10 + Math.random() * 40)
  }
  throw heldError(directory)
}

async function attemptLock(directory: string, short: string): Promise<Lock | undefined> {
  const own = `lock.${randomBytes(4).toString('hex')}.sock`
  const server = await listen(join(short, own))
  let taken = false
  try {
    await chmod(join(directory, own), privateFile)
    const names = await readdir(directory)
    const rivals = names.filter((other) => candidate.test(other) && other !== own)
    for (const rival of rivals) if (await answers(join(short, rival))) return undefined
    // After the rivals, and whatever the list said: a rival may have got it since.
    if (await answers(join(short, name))) throw heldError(directory)
    await rename(join(directory, own), join(directory, name))
    taken = true
    // Left by processes that died while they were trying.
    for (const rival of rivals) await rm(join(directory, rival), { force: true })
  } finally {
    if (!taken) await close(server, join(directory, own))
  }
  const path = join(directory, name)
  const place = placeOf(path, await stat(path))
  return {
    place,
    // Removed before it is closed: a socket that nobody answers is anybody's to replace.
    release: async () => close(server, isInPlace(place) ? path : undefined),
  }
}

function listen(path: string): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy())
    server.on('error', reject)
    server.listen(path, () => resolve(server.unref()))
  })
}

async function close(server: Server, path: string | undefined) {
  if (path) await rm(path, { force: true })
  await new Promise((resolve) => server.close(resolve))
}

/** Only a refusal proves that nobody is there; a full backlog, say, is an answer too. */
function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path, () => {
      socket.destroy()
      resolve(true)
    })
    socket.on('error', (error: NodeJS.ErrnoException) =>
      resolve(error.code !== 'ECONNREFUSED' && !isMissing(error)),
    )
  })
}

/** A socket's path has about 100 bytes; through a link any directory is near. */
async function withShortPath<T>(directory: string, use: (path: string) => Promise<T>): Promise<T> {
  if (Buffer.byteLength(join(directory, 'lock.01234567.sock')) <= 100) return use(directory)
  const parent = await mkdtemp(join(tmpdir(), 'hr-'))
  try {
    await symlink(directory, join(parent, 'd'))
    return await use(join(parent, 'd'))
  } finally {
    await rm(parent, { recursive: true, force: true })
  }
}

function heldError(directory: string) {
  return new ConfigError(
    `The directory ${directory} is in use by another Handrail process. ` +
      'Stop that one first, or give this one a directory of its own.',
  )
}
