import { accessSync, constants, existsSync, readdirSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { chore, Stop } from './run.mjs'

/** Makes each `{ command, package }` something tests can spawn by name: at once when it is there,
 *  else by apt when we may, else by a sentence that says what to install. `package` may be a list. */
export async function ensureSystem(needs) {
  if (missing(needs).length === 0) return
  const packages = [...new Set(missing(needs).flatMap((need) => need.package))]
  if (process.getuid?.() !== 0 || !find('apt-get', path())) {
    throw new Stop(`The tests need ${packages.join(', ')}: install that and run npm test again.`)
  }
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  await chore('updating the package lists', 'apt-get', ['update'], {
    env,
    otherwise: 'apt-get update failed: it says why above.',
  })
  const install = ['install', '-y', '--no-install-recommends', ...packages]
  await chore(`installing ${packages.join(', ')}`, 'apt-get', install, {
    env,
    otherwise: `apt-get could not install ${packages.join(', ')}: it says why above.`,
  })
  const still = missing(needs).map((need) => need.command)
  if (still.length > 0) {
    throw new Stop(`apt-get finished, yet ${still.join(', ')} is nowhere on the PATH.`)
  }
}

/** The needs that cannot be met; folders outside the PATH that meet one are added to it. */
function missing(needs) {
  return needs.filter(({ command }) => {
    if (find(command, path())) return false
    const folder = find(command, postgresFolders())
    if (folder) process.env.PATH = [...path(), folder].join(delimiter)
    return !folder
  })
}

const path = () => (process.env.PATH ?? '').split(delimiter).filter(Boolean)

// Debian keeps initdb and its siblings off the PATH, one folder per version.
function postgresFolders() {
  const base = '/usr/lib/postgresql'
  if (!existsSync(base)) return []
  const newestFirst = readdirSync(base).sort((a, b) => Number(b) - Number(a))
  return newestFirst.map((version) => join(base, version, 'bin'))
}

function find(command, folders) {
  return folders.find((folder) => {
    try {
      accessSync(join(folder, command), constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}
