import { cpSync, existsSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { digest, filesIn, read, root } from './files.mjs'
import { chore } from './run.mjs'

/** The page: a package of its own, built once for each state of its sources. */
export const web = join(root, 'web')
export const webServer = join(web, '.next/standalone/server.js')

const stamp = join(web, '.next/.handrail-build')
const made = new Set(['node_modules', '.next', 'next-env.d.ts', 'tsconfig.tsbuildinfo'])

/** Neither Next nor CopilotKit may tell anybody. */
export const webEnv = {
  NEXT_TELEMETRY_DISABLED: '1',
  COPILOTKIT_TELEMETRY_DISABLED: 'true',
  DO_NOT_TRACK: '1',
}

export const webBuildNeeded = () =>
  existsSync(join(web, 'package.json')) &&
  (!existsSync(webServer) || read(stamp) !== digest(inputs()))

export async function buildWeb(own = () => {}) {
  const hash = digest(inputs()) // before it is read: an edit during the build makes the next one run
  rmSync(stamp, { force: true })
  const next = join(web, 'node_modules/next/dist/bin/next')
  await chore('building the page', process.execPath, [next, 'build'], {
    cwd: web,
    env: { ...process.env, ...webEnv, NODE_ENV: 'production' },
    onSpawn: (child) => child.pid && own(child.pid),
    otherwise:
      'Building the page failed: correct the errors above, or start without it: HANDRAIL_WEB=off npm start.',
  })
  // Next leaves to others what a server in front could serve; there is none.
  const standalone = join(web, '.next/standalone')
  for (const [from, to] of [
    ['.next/static', '.next/static'],
    ['public', 'public'],
  ]) {
    rmSync(join(standalone, to), { recursive: true, force: true })
    cpSync(join(web, from), join(standalone, to), { recursive: true })
  }
  writeFileSync(stamp, hash)
}

const inputs = () => [...filesIn(web, (name) => made.has(name)), join(root, 'scripts/web.mjs')]
