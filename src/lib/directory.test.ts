import { existsSync } from 'node:fs'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { makeDirectory, refuseNoDirectory } from './directory.ts'

async function here() {
  const path = await mkdtemp(join(tmpdir(), 'handrail-test-'))
  onTestFinished(() => rm(path, { recursive: true, force: true }))
  await writeFile(join(path, 'file'), '')
  return path
}

test('a directory is made with its parents, and one that is there is taken', async () => {
  const path = join(await here(), 'a/b')
  makeDirectory(path, 'HANDRAIL_DATA')
  makeDirectory(path, 'HANDRAIL_DATA')
  expect(existsSync(path)).toBe(true)
})

test('a file in its place, or on the way to it, is said so', async () => {
  const path = join(await here(), 'file')
  const sentence = `HANDRAIL_DATA: ${path} is a file. Name a directory.`
  expect(() => makeDirectory(path, 'HANDRAIL_DATA')).toThrow(sentence)
  expect(() => refuseNoDirectory(path, 'HANDRAIL_DATA')).toThrow(sentence)
  expect(() => makeDirectory(`${path}/data`, 'HANDRAIL_DATA')).toThrow(/a file is in the way/)
})

test.skipIf(process.platform !== 'linux')('where nothing can be made, it ends', () => {
  expect(() => makeDirectory('/proc/handrail/data', 'HANDRAIL_DATA')).toThrow(
    'HANDRAIL_DATA: /proc/handrail/data cannot be made (ENOENT). Name another directory.',
  )
})

// Root may write everywhere.
test.skipIf(process.getuid?.() === 0)('one that cannot be written to is said so', async () => {
  const path = await here()
  await chmod(path, 0o500)
  onTestFinished(() => chmod(path, 0o700))
  expect(() => makeDirectory(path, 'HANDRAIL_DATA')).toThrow(/cannot be written to by this user/)
})
