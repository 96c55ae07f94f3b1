import { randomBytes } from 'node:crypto'
import { expect, onTestFinished, test } from 'vitest'
import { agui } from '../support/agui.ts'
import { startServer, temporaryDirectory } from '../support/server.ts'

/** Megabytes of JavaScript heap that the server has, and bytes of one image. */
const heap = 200
const start = async (env: Record<string, string> = {}) => {
  const directory = await temporaryDirectory()
  onTestFinished(() => directory.remove())
  const limit = `--max-old-space-size=${heap}`
  const own = { HANDRAIL_DATA: directory.path, NODE_OPTIONS: limit }
  const server = await startServer({ ...own, ...env })
  onTestFinished(() => server.kill())
  return server
}
const imageBytes = 1_875_000
/** Chats: their images take more than the heap. */
const chats = 100

test('a server with a heap of 200 MB serves 250 MB of images in 100 chats and shows each again', async () => {
  const server = await start({ HANDRAIL_MAX_BODY: '10000000' })
  const images: string[] = []
  for (let n = 0; n < chats; n++) {
    const data = randomBytes(imageBytes).toString('base64')
    images.push(data.slice(0, 64))
    const content = [
      { type: 'text', text: `What is on image ${n}?` },
      { type: 'image', source: { type: 'data', value: data, mimeType: 'image/png' } },
    ]
    const messages = [{ id: `m${n}`, role: 'user', content }]
    const events = await agui(server.url, { threadId: `c${n}`, runId: `r${n}`, messages })
    expect(events.at(-1), server.output()).toMatchObject({ type: 'RUN_FINISHED' })
  }
  for (const n of [0, chats / 2, chats - 1]) {
    const response = await fetch(`${server.url}/copilotkit/threads/c${n}/messages`)
    expect(JSON.stringify(await response.json())).toContain(images[n])
  }
  expect(server.child.exitCode).toBeNull()
}, 300_000)

test('a server with a heap of 200 MB serves 200 chats whose states take more than the heap as objects', async () => {
  const server = await start()
  const state = { list: Array(24_000).fill({}) }
  for (let n = 0; n < 200; n++) {
    const messages = [{ id: `m${n}`, role: 'user', content: 'Hello' }]
    const events = await agui(server.url, { threadId: `c${n}`, runId: `r${n}`, messages, state })
    expect(events.at(-1), server.output()).toMatchObject({ type: 'RUN_FINISHED' })
  }
  expect(server.child.exitCode).toBeNull()
}, 300_000)

/** Characters of one chat. In memory, the letters take two bytes each. */
const letters = 1_900_000
const messagesPerChat = 4

/** Creates chats that together take more than the heap. Returns the last run of each, which waits for an approval. */
async function createLargeChats(url: string, count: number, headers: Record<string, string>) {
  const large = Array<string>(messagesPerChat).fill('\u044f'.repeat(letters))
  const runs: string[] = []
  for (let n = 0; n < count; n++) {
    for (const [m, content] of [...large, 'Write a file named a.txt with the text hi'].entries()) {
      const messages = [{ id: `m${n}-${m}`, role: 'user', content }]
      const run = { threadId: `c${n}`, runId: `r${n}-${m}`, messages }
      expect((await agui(url, run, headers)).at(-1)).toMatchObject({ type: 'RUN_FINISHED' })
    }
    const outline = await fetch(`${url}/copilotkit/threads/c${n}/outline`, { headers })
    runs.push((await outline.json()).runId)
  }
  return runs
}

/** Opens an event stream and reads its first event. Returns the response if there is no stream. */
async function openStream(url: string, headers: Record<string, string>) {
  const response = await fetch(url, { headers })
  if (response.status !== 200) return { response, close: async () => {} }
  const reader = response.body!.getReader()
  onTestFinished(() => reader.cancel().catch(() => {}))
  expect((await reader.read()).done).toBe(false)
  return { response, close: () => reader.cancel() }
}

test('a server with a heap of 200 MB serves idle streams on 20 chats that take more than the heap', async () => {
  const keys = { ann: 'key-of-ann-0123456789', bob: 'key-of-bob-0123456789' }
  const named = Object.entries(keys).map(([user, key]) => `${key}=${user}`)
  const server = await start({ HANDRAIL_API_KEYS: named.join(',') })
  const ann = { 'x-api-key': keys.ann }
  const bob = { 'x-api-key': keys.bob }
  const count = 20
  const runs = await createLargeChats(server.url, count, ann)

  // Streams that only report where a chat stands.
  for (let n = 0; n < count; n++) {
    const watch = `${server.url}/copilotkit/threads/c${n}/watch`
    expect((await openStream(watch, ann)).response.status, server.output()).toBe(200)
  }
  // Streams of runs that wait for an approval.
  const streams: Awaited<ReturnType<typeof openStream>>[] = []
  for (const [n, run] of runs.entries())
    streams.push(await openStream(`${server.url}/chats/c${n}/interactions/${run}/events`, ann))
  const statuses = streams.map(({ response }) => response.status)
  expect(statuses[0], server.output()).toBe(200)
  expect(statuses).toContain(503)
  const refused = streams.find(({ response }) => response.status === 503)!.response
  expect(refused.headers.get('retry-after')).toMatch(/^\d+$/)
  expect(await refused.json()).toMatchObject({ error: { code: 'overloaded', retryable: true } })

  // Another user is served, and so is this one when streams have ended.
  await createLargeChats(server.url, 1, bob)
  for (const stream of streams) await stream.close()
  await expect
    .poll(
      async () =>
        (await fetch(`${server.url}/copilotkit/threads/c0/outline`, { headers: ann })).status,
    )
    .toBe(200)
  expect(server.child.exitCode).toBeNull()
}, 300_000)
