import { randomBytes } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { workshop } from '../../test/support/file-workshop.ts'
import { localBus } from '../bus/local/bus.ts'
import { ByteCache } from '../lib/byte-cache.ts'
import { digestOnce } from '../lib/canonical.ts'
import { systemClock } from '../lib/clock.ts'
import { newId } from '../lib/ids.ts'
import { memoryStore } from '../stores/memory/store.ts'
import { draft } from './entries.ts'
import { largeDataLength, markerOf, sameParts, serializeBody } from './large-parts.ts'
import { type Message, userText } from './messages.ts'
import type { Store } from './store.ts'
import { Thread } from './thread.ts'
import { threadCache } from './thread-cache.ts'

const { directory, open } = workshop()
const actor = { type: 'user', id: 'ann' } as const
const name = { tenant: 't', owner: 'ann', clientId: 'c', agent: 'assistant' }

const image = (length = 4 * largeDataLength) => randomBytes((length * 3) / 4).toString('base64')

const picture = (id: string, ...all: string[]): Message => ({
  id,
  role: 'user',
  parts: [
    { type: 'text', text: 'Look' },
    ...all.map((data) => ({ type: 'media' as const, mediaType: 'image/png', name: 'x', data })),
  ],
})

function threadOn(store: Store, threadId = 'c', large?: ByteCache): Thread {
  const around = { store, bus: localBus(), clock: systemClock, newId, crash: () => {} }
  return new Thread(threadId, { ...around, ...(large && { large }) })
}

async function say(thread: Thread, ...messages: Message[]): Promise<void> {
  const first = thread.state.seq === 0 ? [draft('thread.created', name)] : []
  const said = messages.map((message) => draft('message.added', { message, for: 'both' }))
  await thread.commit([...first, ...said], { guard: {}, actor })
}

const saidOn = ({ state }: Thread) => [...state.messages.values()].map(({ message }) => message)

test('the folded state and the recent entries hold no large data, and the thread reads it again', async () => {
  const store = memoryStore({ clock: systemClock })
  const [data, small] = [image(), image(300)]
  const written = threadOn(store)
  await say(written, picture('m', data, small))
  const opened = threadOn(store)
  await opened.sync()
  for (const thread of [written, opened]) {
    expect(JSON.stringify(saidOn(thread))).not.toContain(data)
    expect(JSON.stringify(saidOn(thread))).toContain(small)
    expect(JSON.stringify(await thread.entries(0, 10))).not.toContain(data)
    expect(JSON.stringify(await thread.entries(1, 10))).not.toContain(data)
    expect(thread.bytes).toBeLessThan(largeDataLength)
    expect(await thread.whole(saidOn(thread))).toEqual([picture('m', data, small)])
  }
})

test('the digest of a message does not depend on where its data is', async () => {
  const thread = threadOn(memoryStore({ clock: systemClock }))
  const message = picture('m', image())
  await say(thread, message)
  const again = await thread.digestsOf([...saidOn(thread), message, ...saidOn(thread)])
  expect(again).toEqual(Array(3).fill(digestOnce(message)))
  expect(sameParts(saidOn(thread)[0]!.parts, message.parts)).toBe(true)
  expect(sameParts(saidOn(thread)[0]!.parts, picture('m', image()).parts)).toBe(false)
})

test('data that a thread already holds is written once, also within one transition and after a copy to another store', async () => {
  const store = await open(await directory())
  const [one, other] = [image(), image()]
  const thread = threadOn(store)
  await say(thread, picture('m1', one), picture('m2', one, other))
  await say(thread, picture('m3', other, one))
  await say(thread, { ...saidOn(thread)[0]!, id: 'm4' }) // an edit copies what is folded
  const journal = await store.dump('c')
  const text = journal.map(({ body }) => body).join()
  for (const data of [one, other]) expect(text.split(data)).toHaveLength(2)

  const elsewhere = await open(await directory())
  await elsewhere.restore('c', journal)
  for (const place of [store, elsewhere]) {
    const read = threadOn(place)
    await read.sync()
    expect(await read.whole(saidOn(read))).toEqual([
      picture('m1', one),
      picture('m2', one, other),
      picture('m3', other, one),
      picture('m4', one),
    ])
  }
})

test('data that the store no longer has as it was is an error and not another image', async () => {
  const store = memoryStore({ clock: systemClock })
  const thread = threadOn(store)
  const data = image()
  await say(thread, picture('m', data))
  const { read } = store
  store.read = async (...all) =>
    (await read(...all)).map((entry) => ({ ...entry, body: entry.body.replace(data, image()) }))
  await expect(thread.whole(saidOn(thread))).rejects.toMatchObject({ code: 'thread_damaged' })
})

test('a marker in a text becomes the data, and text of a client that looks like one stays', async () => {
  const thread = threadOn(memoryStore({ clock: systemClock }))
  const data = image()
  await say(thread, picture('m', data))
  const part = saidOn(thread)[0]!.parts[1]!
  const marker = part.type === 'media' && part.stored ? markerOf(part.stored) : ''
  const forged = marker.replace(/^large_[^-]*/, 'large_0')
  const text = JSON.stringify({ nested: JSON.stringify({ marker, forged }) })
  expect(await thread.filled(text)).toBe(text.replace(marker, data))
})

test('data that was just written is not read from the store again', async () => {
  const store = memoryStore({ clock: systemClock })
  const thread = threadOn(store, 'c', new ByteCache(8 * largeDataLength))
  const data = image()
  await say(thread, picture('m', data))
  store.read = () => {
    throw new Error('read')
  }
  expect(await thread.whole(saidOn(thread))).toEqual([picture('m', data)])
})

test('data that was read is cached up to a limit, and is forgotten with its thread', async () => {
  const cache = new ByteCache(3 * largeDataLength)
  const store = memoryStore({ clock: systemClock })
  const thread = threadOn(store, 'c', cache)
  const images = Array.from({ length: 8 }, () => image(largeDataLength))
  for (const [i, data] of images.entries()) await say(thread, picture(`m${i}`, data))
  let reads = 0
  const { read } = store
  store.read = (...all) => {
    reads++
    return read(...all)
  }
  for (const message of saidOn(thread)) await thread.whole([message, message])
  expect(reads).toBe(images.length)
  expect(cache.size).toBe(3 * largeDataLength)
})

test('the thread cache keeps threads up to a number of bytes', async () => {
  const store = memoryStore({ clock: systemClock })
  const cache = threadCache((threadId) => threadOn(store, threadId), 1_000_000)
  for (let n = 0; n < 20; n++) {
    const thread = cache.create(`c${n}`)
    const row = draft('thread.created', { ...name, clientId: `c${n}` })
    const text = draft('message.added', {
      message: userText('m', 'x'.repeat(100_000)),
      for: 'both',
    })
    await thread.commit([row, text], { guard: {}, actor })
    cache.keep(thread)
    expect(thread.bytes).toBeGreaterThan(100_000)
    expect(cache.bytes).toBeLessThan(1_000_000)
  }
  expect(cache.bytes).toBeGreaterThan(500_000)
})

test('a long thread is read from the store in pages of a limited size', async () => {
  const store = memoryStore({ clock: systemClock })
  const thread = threadOn(store)
  await say(thread, userText('m', 'Hi'))
  for (let n = 0; n < 30; n++) await say(thread, picture(`m${n}`, image(1_000_000)))
  const { read } = store
  const sizes: number[] = []
  store.read = async (...all) => {
    const entries = await read(...all)
    sizes.push(entries.reduce((sum, { body }) => sum + body.length, 0))
    return entries
  }
  const again = threadOn(store)
  await again.sync()
  expect(again.state.messages.size).toBe(31)
  expect(Math.max(...sizes)).toBeLessThan(6_000_000)
})

test('large data that is not base64 stays in the message, where JSON can escape it', async () => {
  const store = memoryStore({ clock: systemClock })
  const thread = threadOn(store)
  const message = picture('m', '"'.repeat(2 * largeDataLength))
  await say(thread, message)
  expect(saidOn(thread)).toEqual([message])
  expect(await thread.digestsOf(saidOn(thread))).toEqual([digestOnce(message)])
})

test('a body with large data has the same JSON as JSON.stringify gives', () => {
  const data = image()
  const message = picture('m', data, image(300), image(), data)
  const reference = { digest: '0'.repeat(64), length: 4 }
  message.parts.push({ type: 'media', mediaType: 'image/png', stored: reference })
  const body = { for: 'both' as const, message, path: 'a' }
  expect(serializeBody(draft('message.added', body))).toBe(JSON.stringify(body))
})

test('other work runs before each cached large part that is put into a text', async () => {
  const thread = threadOn(memoryStore({ clock: systemClock }), 'c', new ByteCache(10_000_000))
  await say(thread, picture('m', image(), image(), image(), image()))
  const message = thread.state.messages.get('m')!.message
  const markers = message.parts.flatMap((part) =>
    part.type === 'media' && part.stored ? [markerOf(part.stored)] : [],
  )
  let turn = 0
  let isCounting = true
  const counting = (async () => {
    for (; isCounting; turn++) await setImmediate()
  })()
  const turns: number[] = []
  for await (const step of thread.filledSteps(markers))
    if (step.length >= largeDataLength) turns.push(turn)
  isCounting = false
  await counting
  expect(turns).toHaveLength(4)
  expect(new Set(turns).size).toBe(4)
})
