import type { Client } from 'pg'
import { expect, test, vi } from 'vitest'
import { create, entry } from '../../../test/contracts/store.contract.ts'
import { postgresWorkshop } from '../../../test/support/postgres-workshop.ts'
import { type Fault, proxyTo } from '../../../test/support/proxy.ts'
import { RuntimeError } from '../../core/errors.ts'
import type { Store } from '../../core/store.ts'

// What is committed must be with the kernel: the server is killed here, the machine is not.
const { server, open, judge } = postgresWorkshop('fsync = off')
const unavailable = { code: 'store_unavailable', retryAfter: 1 }
const append = (store: Store, id = 't') => store.append(id, [entry(id), entry(id)], {})
const takes = (store: Store) =>
  store.probe().then(
    () => true,
    () => false,
  )
const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

/** A store behind a wire that can be cut, and one that sees what is so. */
async function cuttable() {
  const proxy = await proxyTo(server().port)
  const direct = await open()
  const store = await open({ url: proxy.url })
  await create(direct, 't')
  return { proxy, direct, store }
}

const ids = async (store: Store, id = 't') => (await store.read(id)).map((one) => one.id)

test.each<Fault['cut']>(['answer', 'question'])(
  'an append whose %s is lost is written once, and its caller is told so',
  async (cut) => {
    const { proxy, direct, store } = await cuttable()
    const struck = proxy.arm({ cut, when: '.append(' })
    const placed = await append(store)
    await struck
    expect(placed.map(({ seq }) => seq)).toEqual([2, 3])
    expect(await direct.read('t', { after: 1 })).toEqual(placed)
    await proxy.close()
  },
)

test('what still arrives of an append that was given up is not written', async () => {
  const { proxy, direct, store } = await cuttable()
  const struck = proxy.arm({ cut: 'delayed', when: '.append(' })
  const placed = await append(store)
  await struck
  proxy.late()
  await sleep(200)
  expect((await ids(direct)).slice(1)).toEqual(placed.map(({ id }) => id))
  await proxy.close()
})

test('a creation whose answer is lost is not refused as a double of itself', async () => {
  const { proxy, direct, store } = await cuttable()
  const struck = proxy.arm({ cut: 'answer', when: '.append(' })
  const [first] = await create(store, 'new')
  await struck
  expect(first).toMatchObject({ seq: 1, kind: 'thread.created' })
  expect(await ids(direct, 'new')).toEqual([first!.id])
  await proxy.close()
})

test('a batch whose answer is lost: each of it is settled for itself', async () => {
  const { proxy, direct, store } = await cuttable()
  await create(direct, 'u')
  const struck = proxy.arm({ cut: 'answer', when: '.append(' })
  const refused = store.append('t', [entry('t')], { expect: [{ fact: 'no', is: 'yes' }] })
  const results = await Promise.allSettled([append(store), refused, append(store, 'u')])
  await struck
  expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  expect(results[1]).toMatchObject({ reason: { code: 'journal_conflict', data: { fact: 'no' } } })
  expect(await ids(direct)).toHaveLength(3)
  expect(await ids(direct, 'u')).toHaveLength(3)
  await proxy.close()
})

test('whoever waits behind an append in doubt comes next, and does not overtake it', async () => {
  const { proxy, store } = await cuttable()
  const struck = proxy.arm({ cut: 'answer', when: '.append(' })
  const first = append(store)
  await struck
  const since = performance.now()
  const second = append(store)
  expect((await first).map(({ seq }) => seq)).toEqual([2, 3])
  expect((await second).map(({ seq }) => seq)).toEqual([4, 5])
  expect(performance.now() - since).toBeLessThan(3_000)
  await proxy.close()
})

test.each<Fault['cut']>(['answer', 'question'])(
  'an erasure whose %s is lost has happened when it resolves',
  async (cut) => {
    const { proxy, direct, store } = await cuttable()
    const struck = proxy.arm({ cut, when: '.erase(' })
    await store.erase('t', {})
    await struck
    expect(await direct.thread('t')).toBeUndefined()
    await proxy.close()
  },
)

test('reads, claims and renewals survive a connection that broke', async () => {
  const { proxy, store } = await cuttable()
  const read = proxy.arm({ cut: 'answer', when: 'entries' })
  expect(await store.read('t')).toHaveLength(1)
  await read
  const claim = proxy.arm({ cut: 'answer', when: '.claim(' })
  const claimed = await store.claim('t', 'one', 10_000)
  await claim
  const renew = proxy.arm({ cut: 'question', when: 'holder = $1' })
  expect(await store.renew('one', 10_000)).toEqual(new Set([claimed!.fence]))
  await renew
  await store.append('t', [entry('t')], claimed!)
  await proxy.close()
})

test('while Postgres is down everyone is told at once, and all goes on by itself when it is back', async () => {
  const store = await open()
  await create(store, 't')
  const { fence } = (await store.claim('t', 'one', 60_000))!
  await server().crash()
  const since = performance.now()
  await expect(store.read('t')).rejects.toMatchObject(unavailable)
  await expect(store.claim('t', 'two', 1000)).rejects.toMatchObject(unavailable)
  await expect(store.renew('one', 1000)).rejects.toMatchObject(unavailable)
  await expect(store.work(1)).rejects.toMatchObject(unavailable)
  await expect(append(store, 'u')).rejects.toMatchObject(unavailable)
  expect(performance.now() - since).toBeLessThan(4_000)
  await server().start()
  const placed = await store.append('t', [entry('t')], { fence })
  expect(placed[0]!.seq).toBe(2)
  expect((await store.claim('t', 'one', 1000))!.fence).toBeGreaterThan(fence)
})

test('appends under way when Postgres crashes are written once or not at all, and told which', async () => {
  const store = await open()
  const threads = Array.from({ length: 40 }, (_, n) => `t${n}`)
  await Promise.all(threads.map((id) => create(store, id)))
  let writing = true
  const written = new Map<string, string[]>(threads.map((id) => [id, []]))
  const refusals: unknown[] = []
  const writers = threads.map(async (id) => {
    while (writing) {
      const one = entry(id)
      await store.append(id, [one], {}).then(
        () => written.get(id)!.push(one.id),
        async (error) => {
          refusals.push(error)
          await sleep(20)
        },
      )
    }
  })
  for (let n = 0; n < 3; n++) {
    await sleep(150)
    await server().crash()
    await sleep(50)
    await server().start()
  }
  await sleep(150)
  writing = false
  await Promise.all(writers)
  for (const error of refusals) expect(error).toMatchObject(unavailable)
  for (const id of threads) expect((await ids(store, id)).slice(1)).toEqual(written.get(id))
})

const pidsOf = async (judge: Client, name: string): Promise<number[]> => {
  const text = 'SELECT pid FROM pg_stat_activity WHERE application_name = $1'
  return (await judge.query(text, [name])).rows.map(({ pid }) => pid)
}

const victim = () => ({ url: `${server().url}?application_name=victim`, statementLimit: 500 })

test('connections that hang are given up, and what they do when they wake changes nothing', async () => {
  const store = await open(victim())
  const other = await open()
  const client = await judge()
  await Promise.all(['t', 'u', 'v'].map((id) => create(store, id)))
  const pids = await pidsOf(client, 'victim')
  for (const pid of pids) process.kill(pid, 'SIGSTOP')
  try {
    await expect(append(store)).rejects.toMatchObject(unavailable)
    const placed = await append(store) // over a new connection, as the caller was told it may
    expect(placed.map(({ seq }) => seq)).toEqual([2, 3])
    expect(await store.read('u')).toHaveLength(1)
  } finally {
    for (const pid of pids) process.kill(pid, 'SIGCONT')
  }
  await sleep(300)
  expect(await ids(other)).toHaveLength(3)
})

test('an append that hangs in the middle is settled when Postgres goes on, whichever way', async () => {
  const store = await open(victim())
  const other = await open()
  await create(store, 't')
  const client = await judge()
  await client.query("BEGIN; SELECT FROM threads WHERE thread_id = 't' FOR UPDATE")
  const outcome = append(store).then(
    () => 2,
    (error) => {
      expect(error).toMatchObject(unavailable)
      return 0
    },
  )
  const text = "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
  const [{ pid }] = await vi.waitUntil(async () => {
    const { rows } = await client.query(text)
    return rows.length > 0 && rows
  })
  process.kill(pid, 'SIGSTOP')
  await client.query('COMMIT')
  await sleep(2_000)
  process.kill(pid, 'SIGCONT')
  const written = await outcome
  expect(await ids(other)).toHaveLength(1 + written)
})

test('a thread that somebody keeps locked is refused in time, and nobody waits for it', async () => {
  const store = await open({ statementLimit: 1_000 })
  await Promise.all(['t', 'u', 'v'].map((id) => create(store, id)))
  const client = await judge()
  await client.query("BEGIN; SELECT FROM threads WHERE thread_id = 't' FOR UPDATE")
  let refused = false
  const locked = append(store).catch((error) => {
    refused = true
    return error
  })
  await Promise.all([append(store, 'u'), append(store, 'v')])
  expect(refused).toBe(false)
  expect(await locked).toMatchObject(unavailable)
  await client.query('COMMIT')
  expect((await append(store)).map(({ seq }) => seq)).toEqual([2, 3])
})

test('a database that takes no writes counts as away, and is found again without one', async () => {
  const said: string[] = []
  const note = (_: object, message: string) => void said.push(message)
  const store = await open({ log: { info: note, warn: note } })
  await create(store, 't')
  await store.probe()
  const client = await judge()
  await client.query('ALTER DATABASE postgres SET default_transaction_read_only = on')
  await client.query(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'handrail'",
  )
  try {
    await sleep(50)
    await expect(append(store)).rejects.toMatchObject(unavailable)
    expect(await store.read('t')).toHaveLength(1)
    await expect.poll(() => takes(store), { timeout: 5_000 }).toBe(false)
    said.length = 0
    for (let n = 0; n < 3; n++) await Promise.all([store.read('t'), append(store).catch(() => {})])
    expect(said).toEqual([]) // once is enough
  } finally {
    await client.query('SET default_transaction_read_only = off')
    await client.query('ALTER DATABASE postgres RESET default_transaction_read_only')
  }
  await expect.poll(() => takes(store), { timeout: 5_000 }).toBe(true)
  expect(said).toEqual(['writes are taken again'])
  await append(store)
})

test('closes while Postgres is away, and refuses what comes after', async () => {
  const store = await open()
  await create(store, 't')
  await server().crash()
  try {
    const since = performance.now()
    const late = append(store)
    const closed = store.close()
    await expect(late).rejects.toBeInstanceOf(RuntimeError)
    await closed
    expect(performance.now() - since).toBeLessThan(6_000)
    await expect(append(store)).rejects.toMatchObject({ code: 'stopping' })
    await expect(store.read('t')).rejects.toMatchObject({ code: 'stopping' })
  } finally {
    await server().start()
  }
})

test('an append whose outcome was not found out before the store closed is unknown', async () => {
  const { proxy, direct, store } = await cuttable()
  const struck = proxy.arm({ cut: 'answer', when: '.append(' })
  const appended = append(store)
  const outcome = appended.catch((error: unknown) => error)
  await struck
  await proxy.close()
  await store.close()
  expect(await outcome).toMatchObject({ code: 'outcome_unknown', retryable: false })
  expect(await ids(direct)).toHaveLength(3)
})
