import { afterEach, expect, test } from 'vitest'
import { type Stream, streamOf } from '../support/chats.ts'
import { office, type Who } from '../support/office.ts'
import { warpClock } from '../support/warp-clock.ts'

const open: Stream[] = []
afterEach(() => {
  for (const stream of open.splice(0)) stream.leave()
})

type Office = Awaited<ReturnType<typeof office>>

async function follow({ as }: Office, who: Who, after?: string) {
  const more: Record<string, string> = after === undefined ? {} : { 'last-event-id': after }
  const stream = await as(who).open('GET', '/approvals/stream', undefined, more)
  open.push(stream)
  const next = async () => {
    const { value } = await stream.frames.next()
    return value!
  }
  return { stream, next }
}

test('a reader is told what is open, and then what is raised and settled', async () => {
  const all = await office()
  const first = await all.waiting('c1')
  const { next } = await follow(all, 'carl')
  const snapshot = await next()
  expect(snapshot).toMatchObject({ event: 'snapshot', id: expect.stringMatching(/./) })
  expect(snapshot.data).toMatchObject({ approvals: [{ id: first.ask }], first: true, last: true })
  expect(snapshot.data.approvals[0]).not.toHaveProperty('chat_id')

  const second = await all.waiting('c2', 'bob')
  expect(await next()).toMatchObject({ event: 'raised', data: { id: second.ask, owner: 'bob' } })
  await all.decide('carl', first.ask, { approved: false })
  const settled = { id: first.ask, state: 'rejected', decided_by: 'carl' }
  expect(await next()).toMatchObject({ event: 'settled', data: settled })
})

test('nobody is told of what is not for them', async () => {
  const all = await office({ audience: ['chief'] })
  const readers = await Promise.all(
    (['ann', 'carl', 'eve'] as const).map((who) => follow(all, who)),
  )
  for (const { next } of readers) expect((await next()).data.approvals).toEqual([])
  const dora = await follow(all, 'dora')
  await dora.next()
  const { ask } = await all.waiting('c')
  expect((await dora.next()).data.id).toBe(ask)
  await all.decide('dora', ask, { approved: true })
  expect((await dora.next()).event).toBe('settled')
  for (const { stream } of readers) {
    const silence = new Promise((resolve) => setTimeout(() => resolve('nothing'), 300))
    expect(await Promise.race([stream.frames.next(), silence])).toBe('nothing')
  }
})

test('what nobody answers in time has expired', async () => {
  const clock = warpClock()
  const env = { HANDRAIL_LEASE_MS: '3600000' }
  const all = await office({}, { clock, env })
  const { next } = await follow(all, 'carl')
  await next()
  const { ask } = await all.waiting()
  expect((await next()).event).toBe('raised')
  clock.advance(61_000)
  const { event, data } = await next()
  expect(event).toBe('expired')
  expect(data).toMatchObject({ id: ask, state: 'timeout', decided_by: null })
})

test('who comes back with the last id is told what came after it; with another one, what is open', async () => {
  const all = await office()
  const before = await follow(all, 'carl')
  const { id } = await before.next()
  before.stream.leave()
  const { ask } = await all.waiting('c')
  await all.decide('ann', ask, { approved: true })
  const other = await all.waiting('d')
  const again = await follow(all, 'carl', id)
  const told = [await again.next(), await again.next()].map(({ event, data }) => [event, data.id])
  expect(told).toEqual(
    expect.arrayContaining([
      ['settled', ask],
      ['raised', other.ask],
    ]),
  )
  const lost = await follow(all, 'carl', 'life_of_another.7')
  expect((await lost.next()).data).toMatchObject({ approvals: [{ id: other.ask }], last: true })
})

test('a chat that is deleted is gone from who follows', async () => {
  const all = await office()
  await all.waiting('c')
  const kept = await all.waiting('d')
  const { next } = await follow(all, 'carl')
  expect((await next()).data.approvals).toHaveLength(2)
  await all.as('ann').request('DELETE', '/chats/c')
  for (;;) {
    const { event, data } = await next()
    if (event !== 'snapshot') continue
    expect(data.approvals.map(({ id }: { id: string }) => id)).toEqual([kept.ask])
    return
  }
})

test('a reader that does not read is not read for', async () => {
  const all = await office()
  const { store } = all.server.server
  let looks = 0
  const { askChanges } = store
  store.askChanges = (query) => {
    looks++
    return askChanges(query)
  }
  const gone = new AbortController()
  const response = await all.server.server.fetch(
    new Request(`${all.server.url}/approvals/stream`, {
      headers: { 'x-api-key': 'key-of-carl-012345' },
    }),
  )
  await new Promise((resolve) => setTimeout(resolve, 300))
  const before = looks
  for (const chat of ['a', 'b', 'c']) await all.waiting(chat)
  await new Promise((resolve) => setTimeout(resolve, 500))
  expect(looks - before).toBeLessThanOrEqual(1)
  const stream = streamOf(response, gone)
  const snapshot = (await stream.frames.next()).value!
  expect(snapshot.data.approvals).toEqual([])
  const raised = [
    await stream.frames.next(),
    await stream.frames.next(),
    await stream.frames.next(),
  ]
  expect(raised.map(({ value }) => value!.event)).toEqual(['raised', 'raised', 'raised'])
  await stream.frames.return()
})
