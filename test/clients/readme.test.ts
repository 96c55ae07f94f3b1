import { execFile } from 'node:child_process'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { startServer, temporaryDirectory } from '../support/server.ts'

const here = fileURLToPath(new URL('.', import.meta.url))

test('the script that the README prints asks for approval and gives it', async () => {
  const text = await readFile(join(here, '../../README.md'), 'utf8')
  const [, script = ''] = /```js\n(.*?)```/s.exec(text) ?? []
  const place = await temporaryDirectory()
  onTestFinished(place.remove)
  const server = await startServer({ HANDRAIL_DATA: place.path })
  onTestFinished(() => server.kill())
  // Beside the packages it imports.
  const file = join(here, 'node_modules', `readme-${process.pid}.mjs`)
  onTestFinished(() => rm(file, { force: true }))
  await writeFile(file, script.replaceAll('http://localhost:8000', server.url))
  const { stdout } = await promisify(execFile)(process.execPath, [file], { timeout: 15_000 })
  expect(stdout).toMatch(/^Write .*agui\.txt.*\nDone\. /)
  expect(await readFile(join(place.path, 'files/default/local/agui.txt'), 'utf8')).toBe('hello')
})
