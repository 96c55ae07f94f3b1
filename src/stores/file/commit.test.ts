import { constants } from 'node:fs'
import { readdir, readFile, readlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { create, entry } from '../../../test/contracts/store.contract.ts'
import { unsynced, workshop } from '../../../test/support/file-workshop.ts'
import { type Disk, nodeDisk } from './disk.ts'

const { directory, open, corpse } = workshop()
const isLog = (path: string) => path.includes('/log/')

test('shares one sync among all who wait', async () => {
  let syncs = 0
  const fs: Partial<Disk> = {
    async commit(...given) {
      syncs++
      await nodeDisk.commit(...given)
    },
  }
  const store = await open(await directory(), { fs })
  const threads = Array.from({ length: 50 }, (_, n) => `t${n}`)
  await Promise.all(threads.map((id) => create(store, id)))
  syncs = 0
  await Promise.all(threads.flatMap((id) => [1, 2].map(() => store.append(id, [entry(id)], {}))))
  expect(syncs).toBeLessThanOrEqual(4)
})

test('shows nothing before it is durable', async () => {
  let proceed = () => {}
  let slow = false
  const fs: Partial<Disk> = {
    commit: (...given) =>
      slow
        ? new Promise((resolve) => {
            proceed = () => resolve(nodeDisk.commit(...given))
          })
        : nodeDisk.commit(...given),
  }
  const store = await open(await directory(), { fs })
  await create(store, 't')
  slow = true
  const appended = store.append('t', [entry('t', { marks: { thread: { title: 'x' } } })], {})
  await expect.poll(() => proceed.length === 0 && proceed.toString().includes('resolve')).toBe(true)
  expect(await store.read('t')).toHaveLength(1)
  expect(await store.thread('t')).toMatchObject({ title: null })
  slow = false
  proceed()
  await appended
  expect(await store.read('t')).toHaveLength(2)
})

test('a claim waits for what is being written of its thread, and for nothing else', async () => {
  let proceed: (() => void) | undefined
  let slow = false
  const fs: Partial<Disk> = {
    async commit(...given) {
      if (slow)
        await new Promise<void>((resolve) => {
          proceed = resolve
        })
      await nodeDisk.commit(...given)
    },
  }
  const store = await open(await directory(), { fs })
  for (const id of ['t', 'u']) await create(store, id)
  const { fence } = (await store.claim('t', 'one', 1_000))!
  slow = true
  const appended = store.append('t', [entry('t')], { fence })
  await expect.poll(() => proceed).toBeDefined()
  expect(await store.claim('u', 'one', 1_000)).toBeDefined()
  let seen: number | undefined
  const claimed = store.claim('t', 'two', 1_000, true).then(async () => {
    seen = (await store.read('t')).length
  })
  await new Promise((resolve) => setTimeout(resolve, 20))
  expect(seen).toBeUndefined()
  slow = false
  proceed!()
  await Promise.all([appended, claimed])
  expect(seen).toBe(2) // with what the fence before it wrote
  await expect(store.append('t', [entry('t')], { fence })).rejects.toThrow('Another driver')
})

test('rejects a batch that could not be written, and recovers by itself', async () => {
  const path = await directory()
  let full = false
  const limited =
    (write: Disk['write']): Disk['write'] =>
    async (file, bytes, position, at) => {
      if (!full) return write(file, bytes, position, at)
      await write(file, bytes.subarray(0, bytes.length >> 1), position, at)
      throw Object.assign(new Error('no space left'), { code: 'ENOSPC' })
    }
  const fs = { write: limited(nodeDisk.write), commit: limited(nodeDisk.commit) }
  const store = await open(path, { fs })
  await create(store, 't')
  full = true
  const refused = { code: 'store_unavailable', retryAfter: 1 }
  for (let n = 0; n < 3; n++)
    await expect(store.append('t', [entry('t')], {})).rejects.toMatchObject(refused)
  await expect(store.sync()).rejects.toThrow('no space')
  full = false
  await store.append('t', [entry('t', { body: '"kept"' })], {})
  await store.sync()
  expect(store.failed).toBeUndefined()
  const again = await open(await corpse(path))
  expect((await again.read('t')).map(({ seq, body }) => [seq, body])).toEqual([
    [1, '{"name":"x"}'],
    [2, '"kept"'],
  ])
})

test('finds out by itself that there is room again, and says both once', async () => {
  const path = await directory()
  const said: string[] = []
  const note = (_: object, message: string) => void said.push(message)
  let full = false
  let tried = 0
  const fs: Partial<Disk> = {
    async commit(...given) {
      if (full) tried++
      if (full) throw Object.assign(new Error('no space left'), { code: 'ENOSPC' })
      await nodeDisk.commit(...given)
    },
  }
  const store = await open(path, { fs, log: { info: note, warn: note, error: note } })
  await create(store, 't')
  await store.probe()
  full = true
  const refused = { code: 'store_unavailable' }
  await expect(store.append('t', [entry('t')], {})).rejects.toMatchObject(refused)
  const asked = await Promise.allSettled(Array.from({ length: 20 }, () => store.probe()))
  expect(asked.every(({ status }) => status === 'rejected')).toBe(true)
  expect(tried).toBe(2)
  full = false
  const probe = () =>
    store.probe().then(
      () => true,
      () => false,
    )
  await expect.poll(probe, { timeout: 5_000 }).toBe(true)
  expect(said).toEqual([
    expect.stringContaining('are refused'),
    expect.stringContaining('are taken'),
  ])
  expect(await readdir(join(path, 'log'))).toEqual(['1.ndjson'])
})

test('accepts nothing more after a sync that failed', async () => {
  const path = await directory()
  let broken = false
  const errors: string[] = []
  const store = await open(path, {
    log: { info() {}, warn() {}, error: (_details, message) => errors.push(message) },
    fs: {
      async commit(...given) {
        if (broken) throw new Error('EIO')
        await nodeDisk.commit(...given)
      },
    },
  })
  await create(store, 't')
  broken = true
  const refused = { code: 'store_unavailable' }
  await expect(store.append('t', [entry('t')], {})).rejects.toMatchObject(refused)
  broken = false
  await expect(store.append('t', [entry('t')], {})).rejects.toMatchObject(refused)
  await expect(store.claim('t', 'one', 1000)).rejects.toMatchObject(refused)
  await expect(store.probe()).rejects.toMatchObject(refused)
  expect(store.failed?.message).toBe('EIO')
  expect(errors).toHaveLength(1)
  expect(await store.read('t')).toHaveLength(1)
})

test('accepts nothing more after the sync of a journal that failed', async () => {
  let broken = false
  const store = await open(await directory(), {
    fs: {
      async sync(file, at) {
        if (broken) throw new Error('EIO')
        await nodeDisk.sync(file, at)
      },
    },
    ...{ segmentBytes: 1_000, syncEvery: 5 },
  })
  await create(store, 't')
  broken = true
  const appending = async () => {
    for (;;) await store.append('t', [entry('t')], {})
  }
  await expect(appending()).rejects.toMatchObject({ code: 'store_unavailable' })
  expect(store.failed?.message).toBe('EIO')
})

const onLinux = test.runIf(process.platform === 'linux')

onLinux('commits so that a loss of power takes nothing', async () => {
  const path = await directory()
  const store = await open(path)
  await create(store, 't')
  const held = await readdir('/proc/self/fd')
  const logs = []
  for (const fd of held) {
    const target = await readlink(`/proc/self/fd/${fd}`).catch(() => '')
    if (!(target.startsWith(path) && isLog(target))) continue
    logs.push(/^flags:\s+0(\d+)$/m.exec(await readFile(`/proc/self/fdinfo/${fd}`, 'utf8'))![1])
  }
  expect(logs).toHaveLength(1)
  expect(Number.parseInt(logs[0]!, 8) & constants.O_DSYNC).toBe(constants.O_DSYNC)
})

test('says when too many are waiting', async () => {
  const store = await open(await directory())
  await create(store, 't')
  const appends = Array.from({ length: 10_050 }, () => store.append('t', [entry('t')], {}))
  const results = await Promise.allSettled(appends)
  const refused = results.filter((each) => each.status === 'rejected')
  expect(refused.length).toBeGreaterThan(0)
  expect(refused[0]).toMatchObject({ reason: { code: 'overloaded', retryAfter: 1 } })
  expect(await store.read('t', { limit: 20_000 })).toHaveLength(10_051 - refused.length)
})

test('drops segments whose contents have moved to journals and index', async () => {
  const path = await directory()
  const store = await open(path, { segmentBytes: 2000, syncEvery: 5 })
  await create(store, 't')
  for (let n = 0; n < 50; n++) await store.append('t', [entry('t')], {})
  await expect.poll(async () => (await readdir(join(path, 'log'))).length).toBe(1)
  const again = await open(await corpse(path))
  expect(await again.read('t')).toHaveLength(51)
})

test('keeps a thread that was made anew while others were being removed', async () => {
  const path = await directory()
  const store = await open(path, { fs: unsynced })
  for (const id of ['big', 't']) await create(store, id)
  await store.sync()
  const folder = join(path, 'chats', 'big')
  await Promise.all(Array.from({ length: 2_000 }, (_, n) => writeFile(join(folder, `${n}`), '')))
  await store.erase('big', {})
  const removing = store.sync()
  await store.erase('t', {})
  await create(store, 't')
  await store.append('t', [entry('t')], {})
  await removing
  await store.sync()
  expect(await store.read('t')).toHaveLength(2)
  await store.close()
  expect(await (await open(path)).read('t')).toHaveLength(2)
})

test('writes the files that people read, and only where they belong', async () => {
  const path = await directory()
  const asked: string[][] = []
  const store = await open(path)
  store.onDescribe(async (threadId, runIds) => {
    asked.push([threadId, ...runIds])
    const [first] = await store.read(threadId)
    return {
      'chat.json': { id: first!.threadId },
      'interactions/../r.json': 1,
      '../../evil.json': 1,
    }
  })
  await create(store, 't')
  const runs = ['r1', 'r2', 'r1'].map((runId) => entry('t', { runId }))
  await store.append('t', runs, {})
  await store.close()
  expect(asked).toEqual([['t', 'r1', 'r2']])
  const folder = join(path, 'chats', 't')
  expect(await readFile(join(folder, 'chat.json'), 'utf8')).toBe('{\n  "id": "t"\n}\n')
  expect(await readdir(join(folder, 'interactions'))).toEqual(['%2E.%2Fr.json'])
  expect((await readdir(path)).sort()).toEqual(['chats', 'format.json', 'index', 'log'])
})

test('keeps fences growing through epochs and restarts', async () => {
  const path = await directory()
  let last = 0
  for (let start = 0; start < 3; start++) {
    const store = await open(path)
    for (let n = 0; n < 3; n++) {
      const { fence } = (await store.claim('t', 'me', 1000))!
      expect(fence).toBeGreaterThan(last)
      last = fence
    }
    await store.close()
  }
})

test('keeps the log while journals or index cannot be written, and tidies up when they can', async () => {
  const path = await directory()
  let full = false
  const fs: Partial<Disk> = {
    async write(file, bytes, position, at) {
      if (full) throw Object.assign(new Error('no space'), { code: 'ENOSPC' })
      await nodeDisk.write(file, bytes, position, at)
    },
  }
  const store = await open(path, { fs, segmentBytes: 1000, syncEvery: 5 })
  await create(store, 't')
  full = true
  for (let n = 0; n < 30; n++) await store.append('t', [entry('t')], {})
  expect((await readdir(join(path, 'log'))).length).toBeGreaterThan(5)
  expect(await store.read('t')).toHaveLength(31)
  full = false
  await expect.poll(async () => (await readdir(join(path, 'log'))).length).toBe(1)
  expect(await (await open(await corpse(path))).read('t')).toHaveLength(31)
})

test('a change that waits too long behind a slow write is refused, and is not written later', async () => {
  let proceed: (() => void) | undefined
  let slow = false
  const fs: Partial<Disk> = {
    async commit(...given) {
      if (slow)
        await new Promise<void>((resolve) => {
          proceed = resolve
        })
      await nodeDisk.commit(...given)
    },
  }
  const store = await open(await directory(), { fs })
  await create(store, 't')
  slow = true
  const begun = entry('t')
  const first = store.append('t', [begun], {})
  await expect.poll(() => proceed).toBeDefined()
  const waiting = store.append('t', [entry('t')], {}) // in line behind the first
  await expect(waiting).rejects.toMatchObject({ code: 'store_unavailable' })
  slow = false
  proceed!()
  await first
  const last = entry('t')
  await store.append('t', [last], {})
  expect((await store.read('t', { after: 1 })).map(({ id }) => id)).toEqual([begun.id, last.id])
})

test('a write that failed and cannot be taken back has an unknown outcome', async () => {
  let broken = false
  const fs: Partial<Disk> = {
    async commit(file, ...given) {
      await nodeDisk.commit(file, ...given)
      if (!broken) return
      file.truncate = async () => {
        throw new Error('EIO')
      }
      throw new Error('EIO')
    },
  }
  const store = await open(await directory(), { fs })
  await create(store, 't')
  broken = true
  const appended = store.append('t', [entry('t')], {})
  await expect(appended).rejects.toMatchObject({ code: 'outcome_unknown' })
  broken = false
})
