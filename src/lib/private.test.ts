import { chmod, lstat, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { isOpenToOthers, makePrivate } from './private.ts'

const modeOf = async (path: string) => (await lstat(path)).mode & 0o7777

async function place(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'handrail-private-'))
  onTestFinished(() => rm(path, { recursive: true }))
  return path
}

test('makePrivate removes the rights of group and others, and keeps those of the owner', async () => {
  const path = await place()
  const [directory, file] = [join(path, 'd'), join(path, 'f')]
  await mkdir(directory)
  await chmod(directory, 0o2775)
  await writeFile(file, '')
  await chmod(file, 0o644)
  await makePrivate(directory)
  await makePrivate(file)
  expect(await modeOf(directory)).toBe(0o2700)
  expect(await modeOf(file)).toBe(0o600)
})

test('makePrivate does not follow a link and ignores a missing path', async () => {
  const path = await place()
  const target = join(path, 'target')
  await mkdir(target)
  await chmod(target, 0o755)
  await symlink(target, join(path, 'link'))
  await makePrivate(join(path, 'link'))
  await makePrivate(join(path, 'missing'))
  expect(await modeOf(target)).toBe(0o755)
})

test('isOpenToOthers is true for a directory of ours that others may list', async () => {
  const path = await place()
  expect(await isOpenToOthers(path)).toBe(false)
  await chmod(path, 0o755)
  expect(await isOpenToOthers(path)).toBe(true)
  expect(await isOpenToOthers(join(path, 'missing'))).toBe(false)
})
