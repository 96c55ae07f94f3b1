import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test, vi } from 'vitest'
import { chatsClient } from '../support/chats.ts'
import { startServer, temporaryDirectory } from '../support/server.ts'
import { find, names } from '../support/tools.ts'

vi.setConfig({ testTimeout: 120_000 })

const config = fileURLToPath(new URL('./files.config.mjs', import.meta.url))

test('a write_file call that happened before a crash is neither repeated nor asked about again', async () => {
  const { path, remove } = await temporaryDirectory()
  onTestFinished(remove)
  const workspace = join(path, 'files/default/local')
  await mkdir(workspace, { recursive: true })
  await writeFile(join(path, 'files/.layout.json'), '{"version":1,"shared":[]}')
  await writeFile(join(workspace, 'a.txt'), 'old')
  const env = {
    ...{ HANDRAIL_DATA: path, HANDRAIL_CONFIG: config },
    ...{ HANDRAIL_LEASE_MS: '500', HANDRAIL_DEMO_DELAY_MS: '0' },
  }
  // The first effect is the model's, the second the write.
  const first = await startServer({ ...env, HANDRAIL_CRASH: 'effect.ran:2' })
  const client = chatsClient(first.url)
  const stream = await client.start('c', 'Write a file named a.txt with the text new')
  const { approval_id } = find(await stream.until('approval_required'), 'approval_required')
  const run = stream.response.headers.get('x-interaction-id')!
  const answer = { approval_id, approved: true }
  await client.approve('c', run, answer).catch(() => {}) // the server may die before it responds
  await first.exited
  expect(await readFile(join(workspace, 'a.txt'), 'utf8')).toBe('new')
  const second = await startServer(env)
  onTestFinished(() => second.kill())
  const frames = await (await chatsClient(second.url).join('c', run)).rest()
  expect(names(frames).filter((name) => name === 'approval_required')).toHaveLength(1)
  expect(find(frames, 'tool_result').tool_output).toContain('Wrote a.txt')
})
