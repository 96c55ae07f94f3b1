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
