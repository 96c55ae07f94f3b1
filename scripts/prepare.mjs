import { copyFileSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { digest, filesIn, read, root } from './files.mjs'
import { withLock } from './lock.mjs'
import { chore } from './run.mjs'
import { buildWeb, webBuildNeeded } from './web.mjs'

export { root }
export const entry = join(root, 'dist/main.js')

const tsc = join(root, 'node_modules/typescript/bin/tsc')
const lockFile = join(root, 'package-lock.json')
const buildStamp = join(root, 'dist/.handrail-build')

/** Packages of their own: real clients for the tests, the page, and what the bench compares us with. */
export const clients = ['test/clients', 'test/browser', 'test/remote/langgraph-server', 'web']
export const peers = ['bench/peer', 'bench/peer-graphql']

/** Installs and builds what is missing or out of date. With nothing to do it writes nothing, so a
 *  read-only deployment starts too. `tools` insists on the development tools; without it a tree
 *  made by `npm ci --omit=dev` beside a ready dist/ is taken as it is. `packages` are folders that
 *  are installed too; with `page` the page is built. */
export async function prepare({ tools = false, packages = [], page = false } = {}) {
  const pageNeeded = () => page && webBuildNeeded()
  const needed = () =>
    [...new Set([...packages, ...(pageNeeded() ? ['web'] : [])])].filter(packageNeeded)
  if (!installNeeded(tools) && !buildNeeded() && !pageNeeded() && needed().length === 0) return
  await withLock(join(root, '.handrail/prepare'), async ({ own }) => {
    // Asked again inside: whoever held the lock before us may have done it.
    if (installNeeded(tools)) await install('', own)
    for (const folder of needed()) await install(folder, own)
    if (buildNeeded()) await build(own)
    if (pageNeeded()) await buildWeb(own)
  })
}

function installNeeded(tools) {
  if (!existsSync(lockFile)) return false
  const wantTools = tools || existsSync(tsc) || !existsSync(entry)
  if (wantTools && !existsSync(tsc)) return true
  return !isInstalled('') && !installedByHand(wantTools)
}

const packageNeeded = (folder) =>
  existsSync(join(root, folder, 'package-lock.json')) && !isInstalled(folder)

const isInstalled = (folder) => read(stampOf(folder)) === digest([lockOf(folder)])
const stampOf = (folder) => join(root, folder, 'node_modules/.handrail-lock')
export const lockOf = (folder) => join(root, folder, 'package-lock.json')

/** npm notes what it installed in a lock of its own: a tree someone installed without us is as
 *  good as ours when each package has the version we want. Optional ones depend on the platform. */
function installedByHand(wantTools) {
  const noted = read(join(root, 'node_modules/.package-lock.json'))
  if (!noted) return false
  const have = JSON.parse(noted).packages
  return Object.entries(JSON.parse(read(lockFile)).packages).every(([path, wanted]) => {
    const matters =
      path.includes('node_modules/') &&
      !wanted.optional &&
      !(wanted.devOptional && (wanted.os || wanted.cpu)) &&
      (wantTools || !(wanted.dev || wanted.devOptional))
    return !matters || (have[path] !== undefined && have[path].version === wanted.version)
  })
}

async function install(folder, own) {
  // The npm that runs us, if one does. `--include=dev` because NODE_ENV=production would
  // otherwise leave out the compiler.
  const npm = process.env.npm_execpath ?? ''
  const args = ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--include=dev']
  const [command, ...before] = npm.endsWith('npm-cli.js') ? [process.execPath, npm] : ['npm']
  const name = folder === '' ? 'packages' : `packages of ${folder}`
  await chore(`installing ${name}`, command, [...before, ...args], {
    cwd: join(root, folder),
    onSpawn: (child) => child.pid && own(child.pid),
    otherwise:
      'Installing packages failed: npm says why above; when it is the network, run the same command again.',
  })
  writeFileSync(stampOf(folder), digest([lockOf(folder)]))
}

function buildNeeded() {
  if (!existsSync(join(root, 'src'))) return false
  if (!existsSync(entry)) return true
  return existsSync(tsc) && read(buildStamp) !== digest(buildInputs())
}

async function build(own) {
  const inputs = buildInputs()
  const hash = digest(inputs) // before tsc reads: an edit during the build makes the next one run
  rmSync(buildStamp, { force: true })
  // Written over the old files, not into an emptied folder: a server may be running from it.
  await chore('building', process.execPath, [tsc, '-p', 'tsconfig.build.json', '--noEmitOnError'], {
    cwd: root,
    onSpawn: (child) => child.pid && own(child.pid),
    otherwise: 'Building failed: correct the errors above and run the same command again.',
  })
  const sources = new Set(inputs.map((file) => relative(join(root, 'src'), file)))
  copyAssets(sources)
  dropOrphans(sources)
  writeFileSync(buildStamp, hash)
}

/** tsc moves only TypeScript; a .sql beside a store has to come along. */
function copyAssets(sources) {
  for (const name of sources) {
    if (name.endsWith('.ts') || name.startsWith('..')) continue
    const target = join(root, 'dist', name)
    mkdirSync(dirname(target), { recursive: true })
    copyFileSync(join(root, 'src', name), target)
  }
}

/** What was built from a source since deleted or renamed must not be imported by accident. */
function dropOrphans(sources) {
  const dist = join(root, 'dist')
  for (const file of filesIn(dist)) {
    const name = relative(dist, file)
    const source = name.replace(/(\.d\.ts|\.js)(\.map)?$/, '.ts')
    if (!sources.has(name) && !sources.has(source)) rmSync(file)
  }
}

function buildInputs() {
  return [
    ...filesIn(join(root, 'src')).filter((file) => !file.endsWith('.test.ts')),
    ...['tsconfig.json', 'tsconfig.build.json', 'package-lock.json'].map((name) =>
      join(root, name),
    ),
  ]
}
