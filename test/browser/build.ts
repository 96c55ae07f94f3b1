import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const here = fileURLToPath(new URL('.', import.meta.url))
const stamp = join(here, 'dist/.stamp')

/** Vitest calls this before the tests of the browser project: the pages as users would deploy them,
 *  built when their sources or their packages changed. */
export default async function build(): Promise<void> {
  const hash = digest()
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === hash) return
  // A process of its own: under vitest NODE_ENV says test, and React would be built for that.
  const child = spawn(process.execPath, ['node_modules/vite/bin/vite.js', 'build'], {
    cwd: here,
    env: { PATH: process.env.PATH, NODE_ENV: 'production' },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const code = await new Promise((resolve) => child.once('exit', resolve))
  if (code !== 0) throw new Error('The pages could not be built: vite says why above.')
  writeFileSync(stamp, hash)
}

function digest(): string {
  const pages = ['page', 'old'].flatMap((folder) =>
    readdirSync(join(here, folder), { withFileTypes: true })
      .filter((item) => item.isFile())
      .map(({ name }) => `${folder}/${name}`)
      .sort(),
  )
  const files = [...pages, 'vite.config.mjs', 'package-lock.json', '../../README.md']
  const hash = createHash('sha256')
  for (const name of files) hash.update(`${name}\0`).update(readFileSync(join(here, name)))
  return hash.digest('hex')
}
