import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { call, scriptedModel, text } from '../../src/models/scripted.ts'
import { type Frame, transcript } from '../support/chats.ts'
import { type Cluster, type ClusterServer, cluster } from '../support/cluster.ts'
import { find, names, tools } from '../support/tools.ts'

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))
const box = tools()

/** `tell 50`: fifty pieces, one every two milliseconds. `pay`: a call that must be approved. */
const model = scriptedModel(async function* ({ messages }) {
  const last = messages.at(-1)!
  const asked = last.parts.map((part) => ('text' in part ? part.text : '')).join('')
  if (asked === 'pay') yield call(`call-${messages.length}`, 'send', { to: 'ann', amount: 5 })
  else {
    const count = Number(/tell (\d+)/.exec(asked)?.[1] ?? 3)
    for (let n = 1; n <= count; n++) {
      await sleep(2)
      yield text(`${n} `)
    }
  }
})

let all: Cluster

beforeAll(async () => {
  all = await cluster(3, { model, tools: box.all }, { total: 6 })
})

afterAll(async () => {
  await all.close()
})

const wordsTo = (count: number) => Array.from({ length: count }, (_, n) => `${n + 1} `).join('')

/** What was shown of the answer piece by piece is a beginning of it. */
function checkPieces(frames: readonly Frame[]): void {
  for (const { event, data } of frames) {
    if (event !== 'answer') continue
    const pieces = frames.filter((one) => one.event === 'answer_delta')
    const shown = pieces.map((one) => one.data.delta).join('')
    expect(data.content.startsWith(shown)).toBe(true)
  }
}

test('a run that is started on one server is read on all of them, as it is written', async () => {
  const [a, b, c] = all.servers as [ClusterServer, ClusterServer, ClusterServer]
  for (const first of [a, b, c]) {
    const chat = `read-${all.servers.indexOf(first)}`
    const started = await first.start(chat, 'tell 150')
    const { value } = await started.frames.next()
    const { interaction_id } = (value as Frame).data
    const joined = await Promise.all(
      all.servers.filter((one) => one !== first).map((one) => one.join(chat, interaction_id)),
    )
    const read = await Promise.all([started, ...joined].map((stream) => stream.rest()))
    for (const frames of read) {
      expect([...transcript(frames).values()]).toEqual([wordsTo(150)])
      expect(frames.filter(({ event }) => event === 'answer_delta').length).toBeGreaterThan(100)
      expect(names(frames)).not.toContain('retracted')
      checkPieces(frames)
    }
  }
})

test('a client that comes back on another server goes on exactly where it was', async () => {
  const [first] = all.servers
  const started = await first!.start('moves', 'tell 300')
  const { value } = await started.frames.next()
  const { interaction_id } = (value as Frame).data
  let stream = started
  const seen: Frame[] = []
  for (let n = 1; ; n++) {
    for (let left = 25; left > 0; left--) {
      const next = await stream.frames.next()
      if (next.done) break
      seen.push(next.value)
    }
    stream.leave()
    if (seen.at(-1)?.event === 'interaction_complete') break
    stream = await all.servers[n % 3]!.join('moves', interaction_id, seen.at(-1)!.id)
  }
  const pieces = seen.filter(({ event }) => event === 'answer_delta')
  const shown = pieces.map(({ data }) => data.delta).join('')
  expect(names(seen)).not.toContain('retracted')
  expect(wordsTo(300).startsWith(shown)).toBe(true)
  expect(pieces.length).toBeGreaterThan(200)
  expect([...transcript(seen).values()]).toEqual([wordsTo(300)])
})

test('an approval that is asked for on one server is given on another, and carried out once', async () => {
  for (let n = 0; n < 6; n++) {
    const chat = `pay-${n}`
    const [first, second, third] = [0, 1, 2].map((i) => all.servers[(n + i) % 3]!)
    const before = box.sent.length
    const stream = await first!.start(chat, 'pay')
    const frames = await stream.until('approval_required')
    const { interaction_id } = find(frames, 'interaction_started')
    const { approval_id } = find(frames, 'approval_required')
    const body = { approval_id, approved: true }
    const answers = await Promise.all([
      second!.approve(chat, interaction_id, body),
      third!.approve(chat, interaction_id, body),
    ])
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 400])
    const rest = await stream.rest()
    expect(find(rest, 'interaction_complete').status).toBe('COMPLETED')
    expect(box.sent.length).toBe(before + 1)
  }
})

test('a stop from another server reaches the driver at once', async () => {
  for (let n = 0; n < 3; n++) {
    const chat = `stop-${n}`
    const stream = await all.servers[n % 3]!.start(chat, 'tell 5000')
    const frames = await stream.until('answer_delta')
    const { interaction_id } = find(frames, 'interaction_started')
    const idle = all.servers.find(({ runtime }) => runtime.legs === 0)!
    const since = Date.now()
    expect((await idle.cancel(chat, interaction_id)).ok).toBe(true)
    const rest = await stream.rest()
    expect(Date.now() - since).toBeLessThan(1_000)
    expect(find(rest, 'interaction_complete').status).toBe('CANCELLED')
  }
})

test('what one server has acknowledged, the others know, with or without Redis', async () => {
  const [a, b, c] = all.servers as [ClusterServer, ClusterServer, ClusterServer]
  await (await a.start('fresh', 'tell 1')).rest()
  for (const one of [b, c]) expect((await one.chat('fresh')).interactions).toHaveLength(1)
  all.redis.pause()
  const stream = await a.start('fresh', 'tell 2')
  await stream.frames.next()
  for (const one of [b, c]) expect((await one.chat('fresh')).interactions).toHaveLength(2)
  all.redis.resume()
  await stream.rest()
})

test('a chat that is deleted on one server is gone from all, and so are its readers', async () => {
  const [a, b, c] = all.servers as [ClusterServer, ClusterServer, ClusterServer]
  const started = await a.start('gone', 'tell 5000')
  const { value } = await started.frames.next()
  const joined = await c.join('gone', (value as Frame).data.interaction_id)
  await joined.until('answer_delta')
  expect((await b.request('DELETE', '/chats/gone')).status).toBe(204)
  await Promise.all([started.rest(), joined.rest()])
  for (const one of all.servers) expect((await one.request('GET', '/chats/gone')).status).toBe(404)
  const again = await (await c.start('gone', 'tell 3')).rest()
  expect([...transcript(again).values()]).toEqual([wordsTo(3)])
})

test('there are never more legs than the cluster has room for', async () => {
  let most = 0
  const watch = setInterval(() => {
    most = Math.max(
      most,
      all.servers.reduce((sum, { runtime }) => sum + runtime.legs, 0),
    )
  }, 2)
  const streams = await Promise.all(
    Array.from({ length: 30 }, (_, n) => all.servers[n % 3]!.start(`room-${n}`, 'tell 20')),
  )
  const read = await Promise.all(streams.map((stream) => stream.rest()))
  clearInterval(watch)
  for (const frames of read) expect(transcript(frames).size).toBe(1)
  expect(most).toBeLessThanOrEqual(6)
  expect(most).toBeGreaterThan(3)
})

test('whatever happens to Redis, every run ends and every reader has its text', async () => {
  const faults = [
    () => all.redis.command('FLUSHALL'),
    () => all.redis.command('CLIENT', 'KILL', 'TYPE', 'pubsub'),
    () => all.redis.command('CLIENT', 'KILL', 'TYPE', 'normal'),
    async () => {
      all.redis.pause()
      await sleep(400)
      all.redis.resume()
    },
    async () => {
      await all.redis.kill()
      await sleep(300)
      await all.redis.start()
    },
  ]
  const streams = Promise.all(
    Array.from({ length: 18 }, async (_, n) => {
      await sleep(n * 100)
      const stream = await all.servers[n % 3]!.start(`fault-${n}`, 'tell 200')
      const { value } = await stream.frames.next()
      const other = await all.servers[(n + 1) % 3]!.join(
        `fault-${n}`,
        (value as Frame).data.interaction_id,
      )
      return await Promise.all([stream.rest(), other.rest()])
    }),
  )
  for (const fault of faults) {
    await sleep(300)
    await fault()
  }
  for (const pair of await streams) {
    for (const frames of pair) {
      expect([...transcript(frames).values()]).toEqual([wordsTo(200)])
      checkPieces(frames)
    }
  }
  await vi.waitFor(() => {
    for (const { runtime } of all.servers) expect(runtime.legs).toBe(0)
  })
}, 120_000)
