import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** Vitest calls this before the tests of the web project: the page as `npm start` builds it, built when
 *  its sources or its packages changed. */
export default async function build(): Promise<void> {
  // A process of its own: under vitest NODE_ENV says test, and React would be built for that.
  const { NODE_ENV: _, VITEST: __, ...env } = process.env
  const child = spawn(process.execPath, ['scripts/build.mjs', '--page'], {
    cwd: root,
    env,
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  const code = await new Promise((resolve) => child.once('exit', resolve))
  if (code !== 0) throw new Error('The page could not be built: the lines above say why.')
}
