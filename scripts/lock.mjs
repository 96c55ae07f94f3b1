import {
  appendFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'

/** Runs `work` while no other process runs under the same lock directory. The lock lists the
 *  processes doing the work (`own(pid)` adds one) and is void once none of them is alive, so a
 *  kill -9 leaves nothing to clean up, and an orphaned child is still waited for.
 *
 *  Every step is one rename of a directory that already holds its list: a rename cannot replace
 *  a directory that is not empty, which makes it the test and the claim at once. */
export async function withLock(path, work) {
  const mine = `${path}.${process.pid}`
  rmSync(mine, { recursive: true, force: true })
  mkdirSync(mine, { recursive: true })
  writeFileSync(join(mine, 'owners'), line(process.pid))
  let told = false
  while (!moved(mine, path)) {
    const owners = ownersOf(path)
    if (owners && !owners.some(alive)) {
      // Named after the dead owner, so of two takers the slower cannot bury the faster's lock.
      moved(path, `${path}.dead-${owners[0].replace(' ', '-')}`)
      continue
    }
    if (!told && owners) {
      console.error(`waiting for another Handrail command (pid ${parseInt(owners[0], 10)}) ...`)
      told = true
    }
    await new Promise((resolve) => setTimeout(resolve, 200))
  }
  try {
    return await work({ own: (pid) => appendFileSync(join(path, 'owners'), line(pid)) })
  } finally {
    moved(path, mine)
    rmSync(mine, { recursive: true, force: true })
    sweep(path)
  }
}

function moved(from, to) {
  try {
    renameSync(from, to)
    return true
  } catch (error) {
    if (['ENOTEMPTY', 'EEXIST', 'EPERM', 'ENOENT'].includes(error.code)) return false
    throw error
  }
}

/** null when the lock was released a moment ago. */
function ownersOf(path) {
  try {
    return readFileSync(join(path, 'owners'), 'utf8').split('\n').filter(Boolean)
  } catch {
    return null
  }
}

const line = (pid) => `${pid} ${birthOf(pid)}\n`

function alive(owner) {
  const [pid, birth] = owner.split(' ')
  const now = birthOf(Number(pid))
  return now === birth && now !== 'gone' && now !== 'zombie'
}

/** When the process was born, as far as the system tells: a pid alone may be someone else by now,
 *  most easily in a restarted container. 'gone' when there is no such process. */
function birthOf(pid) {
  try {
    process.kill(pid, 0)
  } catch (error) {
    if (error.code !== 'EPERM') return 'gone'
  }
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return fields[0] === 'Z' ? 'zombie' : fields[19]
  } catch {
    return 'unknown' // no /proc here: the pid has to do
  }
}

/** Removes what killed processes left beside the lock. */
function sweep(path) {
  for (const name of readdirSync(dirname(path))) {
    if (!name.startsWith(`${basename(path)}.`)) continue
    const left = join(dirname(path), name)
    const owners = ownersOf(left)
    if (owners && !owners.some(alive)) rmSync(left, { recursive: true, force: true })
  }
}
