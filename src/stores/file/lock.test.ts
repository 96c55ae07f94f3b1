import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { access, mkdir, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { lockDirectory } from './lock.ts'

let directory: string
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'handrail-lock-'))
})
afterEach(() => rm(directory, { recursive: true }))

test('refuses a directory that is held, and names it', async () => {
  const { release } = await lockDirectory(directory)
  await expect(lockDirectory(directory)).rejects.toThrow(directory)
  await release()
  expect(await readdir(directory)).toEqual([])
  await (await lockDirectory(directory)).release()
})

test('takes over what a killed process has left', async () => {
  const path = JSON.stringify(join(directory, 'lock.sock'))
  const script = `require('net').createServer().listen(${path}, () => console.log('up'))`
  const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'ignore'] })
  await once(child.stdout!, 'data')
  await expect(lockDirectory(directory)).rejects.toThrow('in use')
  child.kill('SIGKILL')
  await once(child, 'exit')
  await access(join(directory, 'lock.sock'))
  const { release } = await lockDirectory(directory)
  await expect(lockDirectory(directory)).rejects.toThrow('in use')
  await release()
})

test('lets only one of many have it, also when all find it abandoned', async () => {
  for (let round = 0; round < 5; round++) {
    const tries = await Promise.allSettled(
      Array.from({ length: 8 }, () => lockDirectory(directory)),
    )
    const held = tries.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []))
    expect(held).toHaveLength(1)
    await held[0]!.release()
  }
})

test('holds a directory whose path is too long for a socket', async () => {
  const deep = join(directory, 'd'.repeat(100), 'e'.repeat(100))
  await mkdir(deep, { recursive: true })
  const { release } = await lockDirectory(deep)
  expect(await readdir(deep)).toEqual(['lock.sock'])
  await expect(lockDirectory(deep)).rejects.toThrow('in use')
  await release()
  expect(await readdir(deep)).toEqual([])
})
