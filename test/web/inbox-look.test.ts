import { afterEach, expect, test, vi } from 'vitest'
import { Inbox } from '../../web/lib/inbox.ts'

afterEach(() => {
  vi.unstubAllGlobals()
  vi.useRealTimers()
})

/** A tab that does not hold the stream: it looks at the inbox every three seconds. */
function secondTab(ids: readonly string[]) {
  vi.useFakeTimers()
  const states = new Map(ids.map((id) => [id, 'pending']))
  const failing = new Set<string>()
  const listed = { settled: 50, open: 200 }
  const requests: string[] = []
  const row = (id: string) => ({ id, state: states.get(id), deadline: id, decided_by: 'bob' })
  const rows = (wanted: (state: string) => boolean, limit: number) =>
    [...states]
      .filter(([, state]) => wanted(state))
      .map(([id]) => row(id))
      .slice(0, limit)
  vi.stubGlobal('document', {
    visibilityState: 'visible',
    addEventListener() {},
    removeEventListener() {},
  })
  const request = async (_name: string, _options: object, work: (lock: null) => Promise<void>) =>
    await work(null)
  vi.stubGlobal('navigator', { locks: { request } })
  vi.stubGlobal('fetch', async (path: string) => {
    requests.push(path)
    const id = /approvals\/([^/?]+)$/.exec(path)?.[1]
    if (id !== undefined) {
      if (failing.has(id)) return new Response('{}', { status: 503 })
      return states.has(id) ? Response.json(row(id)) : new Response('{}', { status: 404 })
    }
    return path.includes('state=settled')
      ? Response.json({ approvals: rows((state) => state !== 'pending', listed.settled) })
      : Response.json({ approvals: rows((state) => state === 'pending', listed.open) })
  })
  const inbox = new Inbox()
  const leave = inbox.follow()
  const look = async () => {
    await vi.advanceTimersByTimeAsync(3_000)
    const { open = [], settled } = inbox.get()
    return { open: open.map(({ id }) => id), settled: [...settled.keys()].sort() }
  }
  return { states, failing, listed, requests, look, leave }
}

const names = (count: number) => Array.from({ length: count }, (_, n) => `a${100 + n}`)

test('a tab that looks now and then shows how each of twenty requests ended that were settled at once', async () => {
  const ids = names(20)
  const tab = secondTab(ids)
  expect((await tab.look()).open).toEqual(ids)
  for (const id of ids) tab.states.set(id, 'approved')
  expect(await tab.look()).toEqual({ open: [], settled: ids })
  tab.leave()
})

test('a request whose end is not known yet stays in the list until it was looked up', async () => {
  const ids = names(20)
  const tab = secondTab(ids)
  await tab.look()
  tab.listed.settled = 0
  for (const id of ids) tab.states.set(id, 'rejected')
  for (let rest = 15; rest >= 0; rest -= 5) {
    const { open, settled } = await tab.look()
    expect(open).toHaveLength(rest)
    expect([...open, ...settled].sort()).toEqual(ids)
  }
  tab.leave()
})

test('a request that went with its chat leaves the list, and one that cannot be read stays', async () => {
  const tab = secondTab(['a', 'b', 'c'])
  await tab.look()
  tab.listed.settled = 0
  tab.states.delete('a')
  tab.states.set('b', 'approved')
  tab.failing.add('b')
  expect((await tab.look()).open).toContain('b')
  tab.failing.clear()
  await tab.look()
  expect(await tab.look()).toEqual({ open: ['c'], settled: ['b'] })
  tab.leave()
})

test('open requests beyond those that the server lists do not keep a settled one from being looked up', async () => {
  const ids = names(12)
  const tab = secondTab(ids)
  await tab.look()
  tab.listed.open = 2
  tab.listed.settled = 0
  tab.states.set(ids[11]!, 'approved')
  await tab.look()
  await tab.look()
  const { open, settled } = await tab.look()
  expect(open).toEqual(ids.slice(0, 11))
  expect(settled).toEqual([ids[11]])
  tab.leave()
})
