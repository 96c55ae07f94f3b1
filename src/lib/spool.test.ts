import { mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { fileSpool } from './spool.ts'

test('what is saved is found until it is removed, whatever the key, and only we can read it', async () => {
  const place = await mkdtemp(join(tmpdir(), 'handrail-spool-'))
  const directory = join(place, 'spool')
  const spool = fileSpool(directory)
  const key = '../eff/1\0'
  expect(await spool.find(key)).toBeUndefined()
  await spool.remove(key)
  await spool.save(key, { output: 'done', at: 1 })
  expect(await spool.find(key)).toEqual({ output: 'done', at: 1 })
  expect((await stat(directory)).mode & 0o077).toBe(0)
  await spool.remove(key)
  expect(await spool.find(key)).toBeUndefined()
  await rm(place, { recursive: true })
})
