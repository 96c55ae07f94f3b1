import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { join, posix } from 'node:path'
import { pathToFileURL } from 'node:url'
import { clients, lockOf, peers } from './prepare.mjs'

/** What is wrong with a lock, one sentence each, none when it is good. */
export function lockProblems(text) {
  const { packages } = JSON.parse(text)
  const entries = Object.entries(packages)
  return [
    ...entries.flatMap(absentOptionals(packages)),
    ...entries.flatMap(addresses),
    ...hosts(text),
  ]
}

// npm drops an optional package the registry does not have, writes the lock without it, and then
// `npm ci` refuses that lock, or macOS users get a tree without their binary.
function absentOptionals(packages) {
  return ([path, { optionalDependencies = {} }]) =>
    Object.keys(optionalDependencies)
      .filter((name) => !reachable(packages, path, name))
      .map(
        (name) =>
          `package-lock.json: ${label(path)} wants the optional package ${name}, which has no entry: ` +
          `pin ${label(path)} to the last version whose optional packages were all published, then npm install.`,
      )
}

/** As Node looks a package up: beside the one that wants it, then in each folder above. */
function reachable(packages, path, name) {
  for (let folder = path; ; folder = posix.dirname(folder)) {
    if (folder === '.') folder = ''
    if (packages[posix.join(folder, 'node_modules', name)]) return true
    if (folder === '') return false
  }
}

// A download address ties every clone to the registry of whoever wrote the lock. A workspace's
// link is "resolved" to a folder of ours, which is no address.
function addresses([path, { resolved, link }]) {
  if (!resolved || link) return []
  return [`package-lock.json: ${label(path)} has a download address; ${cure}`]
}

// Names are recognised by shape, and by the setting of the npm that runs us.
function hosts(text) {
  const own = process.env.npm_config_registry
  const shapes = [/\bregistry(?:\.[a-z0-9-]+)+/i, /https?:[^"\s]+\.tgz/i]
  const found = shapes.map((shape) => text.match(shape)?.[0]).find(Boolean)
  if (found) return [`package-lock.json names a package registry (${found}); ${cure}`]
  if (own && text.includes(new URL(own).host)) {
    return [`package-lock.json names the registry npm is set to; ${cure}`]
  }
  return []
}

const cure =
  'remove the addresses with: npm install --package-lock-only --ignore-scripts --omit-lockfile-registry-resolved'

const label = (path) => path.split('node_modules/').pop() || 'the root package'

// Through realpath: under a symlink the two would differ and the check would pass unseen.
if (import.meta.url === pathToFileURL(realpathSync(process.argv[1])).href) {
  const folders = ['', ...clients, ...peers].filter((folder) => existsSync(lockOf(folder)))
  const problems = folders.flatMap((folder) =>
    lockProblems(readFileSync(lockOf(folder), 'utf8')).map((one) => join(folder, one)),
  )
  for (const problem of problems) console.error(problem)
  process.exitCode = problems.length > 0 ? 1 : 0
}
