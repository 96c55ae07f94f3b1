import { readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { create, entry } from '../../../test/contracts/store.contract.ts'
import { workshop } from '../../../test/support/file-workshop.ts'
import type { Store } from '../../core/store.ts'
import { type Disk, nodeDisk } from './disk.ts'

const { directory, open } = workshop()
const refused = { code: 'store_unavailable' }
const say = (store: Store, body: string) => store.append('t', [entry('t', { body })], {})
const bodies = async (store: Store) => (await store.read('t')).slice(1).map(({ body }) => body)

function listening() {
  const errors: string[] = []
  const log = { info() {}, warn() {}, error: (_: object, message: string) => errors.push(message) }
  return { errors, log }
}

test('acknowledges nothing once another has its directory, and leaves that one alone', async () => {
  const path = await directory()
  const { errors, log } = listening()
  const first = await open(path, { log })
  await create(first, 't')
  await say(first, '"one"')
  const segment = () => readFile(join(path, 'log', '1.ndjson'), 'utf8').catch(() => '')
  const before = await segment()
  await rm(join(path, 'lock.sock'))
  const second = await open(path)
  await say(second, '"two"')
  await new Promise((resolve) => setTimeout(resolve, 120)) // it looks before it writes, after a pause
  for (const body of ['"three"', '"four"'])
    await expect(say(first, body)).rejects.toMatchObject(refused)
  expect(await segment()).toBe(before)
  await say(second, '"five"')
  await first.close() // would end its segment and begin one that the other has
  expect(errors).toEqual([expect.stringContaining('taken from this process')])
  await second.close()
  expect(await bodies(await open(path))).toEqual(['"one"', '"two"', '"five"'])
})

test('does not acknowledge what was written after another had read the log', async () => {
  const path = await directory()
  let taken: Promise<Store> | undefined
  let slow = false
  const fs: Partial<Disk> = {
    async commit(...given) {
      if (slow) {
        slow = false
        await rm(join(path, 'lock.sock'))
        taken = open(path)
        await taken
      }
      await nodeDisk.commit(...given)
    },
  }
  const first = await open(path, { fs })
  await create(first, 't')
  slow = true
  // Whether the other read it is not ours to know.
  await expect(say(first, '"one"')).rejects.toMatchObject({ code: 'outcome_unknown' })
  expect(await bodies((await taken)!)).toEqual([])
})

test.each(['', 'log', 'lock.sock'])('stops by itself when %o is removed under it', async (name) => {
  const path = await directory()
  const { errors, log } = listening()
  const store = await open(path, { log })
  await create(store, 't')
  await rm(join(path, name), { recursive: true })
  await expect.poll(() => store.failed, { timeout: 3_000 }).toBeDefined()
  expect(errors).toEqual([expect.stringContaining('nothing more is accepted')])
  await expect(say(store, '"one"')).rejects.toMatchObject(refused)
  await expect(store.claim('t', 'me', 1_000)).rejects.toMatchObject(refused)
  await expect(store.probe()).rejects.toMatchObject(refused)
  await store.close()
  if (name === 'log') expect(await readdir(path)).not.toContain('log')
})

test('acknowledges nothing that got in line before a sync failed', async () => {
  const path = await directory()
  let begun = () => {}
  let broken = false
  const fs: Partial<Disk> = {
    async commit(...given) {
      if (!broken) return nodeDisk.commit(...given)
      broken = false
      begun()
      await new Promise((resolve) => setTimeout(resolve, 20))
      throw new Error('EIO')
    },
  }
  const store = await open(path, { fs })
  await create(store, 't')
  broken = true
  const committing = new Promise<void>((resolve) => {
    begun = resolve
  })
  const first = say(store, '"one"')
  await committing
  const second = say(store, '"two"')
  await expect(first).rejects.toMatchObject(refused)
  await expect(second).rejects.toMatchObject(refused)
})
