import { execFileSync } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { call, scriptedModel, text } from '../../src/models/scripted.ts'
import { chatsClient } from '../support/chats.ts'
import { serve } from '../support/serve.ts'
import { startServer, temporaryDirectory } from '../support/server.ts'
import { find, names, problem, tools } from '../support/tools.ts'

const steps = () =>
  scriptedModel((request) => {
    const last = request.messages.at(-1)!
    if (last.role !== 'user') return [text('Done.')]
    const [part] = last.parts
    if (part?.type === 'text' && part.text === 'pay')
      return [call(`call_${last.id}`, 'send', { to: 'ann', amount: 5 })]
    return [text('Hello.')]
  })

async function directory(): Promise<string> {
  const { path, remove } = await temporaryDirectory()
  onTestFinished(remove)
  return path
}

test('a chat is a folder that people can read', async () => {
  const data = await directory()
  const box = tools()
  const settings = { model: steps(), tools: box.all, builtIns: false }
  const server = await serve(settings, { data })
  const ids: string[] = []
  for (const message of ['hello', 'and again']) {
    const stream = await server.start('my-chat', message)
    await stream.rest()
    ids.push(stream.response.headers.get('x-interaction-id')!)
  }
  const chat = await server.chat('my-chat')
  await server.close()
  const folder = join(data, 'chats', 'my-chat')
  const readJson = async (name: string) => JSON.parse(await readFile(join(folder, name), 'utf8'))
  expect(await readJson('chat.json')).toMatchObject({
    id: 'my-chat',
    title: 'hello',
    agent: 'assistant',
    status: 'idle',
    created_at: chat.created_at,
  })
  expect((await readdir(join(folder, 'interactions'))).sort()).toEqual(
    ids.map((id) => `${id}.json`).sort(),
  )
  for (const [n, id] of ids.entries())
    expect(await readJson(`interactions/${id}.json`)).toEqual(chat.interactions[n])
  const lines = (await readFile(join(folder, 'journal.ndjson'), 'utf8')).trim().split('\n')
  expect(lines.length).toBeGreaterThan(10)
  expect(JSON.stringify(lines)).toContain('hello')
})

test('the file of an interaction after a long history has its own messages and not the history', async () => {
  const data = await directory()
  const settings = { model: steps(), tools: tools().all, builtIns: false }
  const server = await serve(settings, { data })
  const long = 'x'.repeat(30_000)
  const ids: string[] = []
  for (const message of [long, 'pay', 'hello']) {
    const stream = await server.start('c', message)
    ids.push(stream.response.headers.get('x-interaction-id')!)
    if (message !== 'pay') {
      await stream.rest()
      continue
    }
    const { approval_id } = find(await stream.until('approval_required'), 'approval_required')
    await server.request('POST', `/approvals/${approval_id}`, { approved: true })
    await stream.rest()
  }
  const one = async (id: string) =>
    await (await server.request('GET', `/chats/c/interactions/${id}`)).json()
  const whole = await Promise.all(ids.map(one))
  await server.close()
  const file = async (id: string) =>
    JSON.parse(await readFile(join(data, 'chats', 'c', 'interactions', `${id}.json`), 'utf8'))
  expect(await file(ids[0]!)).toEqual(whole[0])
  let before = whole[0].final_agent_state.messages.length
  for (const n of [1, 2]) {
    const { messages, ...rest } = await file(ids[n]!)
    const { final_agent_state, ...same } = whole[n]
    expect(rest).toEqual({ ...same, final_agent_state: null, final_agent_state_omitted: true })
    expect(messages).toEqual(final_agent_state.messages.slice(before))
    before += messages.length
  }
})

test('the files of a chat that waits, was edited, or was deleted say so', async () => {
  const data = await directory()
  const settings = { model: steps(), tools: tools().all, builtIns: false }
  const server = await serve(settings, { data })
  const first = await server.start('c', 'hello')
  await first.rest()
  const old = first.response.headers.get('x-interaction-id')!
  const waits = await server.edit('c', old, 'pay')
  await waits.until('approval_required')
  await server.recorded('c', 'run.waiting')
  waits.leave()
  await (await server.start('gone', 'hello')).rest()
  await server.request('DELETE', '/chats/gone')
  await server.close()
  const folder = join(data, 'chats', 'c')
  const readJson = async (name: string) => JSON.parse(await readFile(join(folder, name), 'utf8'))
  expect((await readJson('chat.json')).status).toBe('waiting')
  const id = waits.response.headers.get('x-interaction-id')
  expect(await readJson(`interactions/${id}.json`)).toMatchObject({ status: 'WAITING_APPROVAL' })
  expect(await readJson(`interactions/${old}.json`)).toMatchObject({ superseded: true })
  expect(await readdir(join(data, 'chats'))).toEqual(['c'])
})

test('files for people that a killed server did not come to are written by the next', async () => {
  const data = await directory()
  const first = await startServer({ HANDRAIL_DATA: data, HANDRAIL_DEMO_DELAY_MS: '0' })
  const said = await chatsClient(first.url).start('c', 'Count to 3')
  await said.rest()
  const id = said.response.headers.get('x-interaction-id')!
  const journal = join(data, 'chats', 'c', 'journal.ndjson')
  // In the journal, so that nothing of it is left to be moved; its file waits for a quiet moment.
  await expect.poll(() => readFile(journal, 'utf8').catch(() => '')).toContain('run.completed')
  await first.kill()
  const file = join(data, 'chats', 'c', 'interactions', `${id}.json`)
  await rm(file, { force: true }) // or a slow machine would have had the time
  const second = await startServer({ HANDRAIL_DATA: data })
  onTestFinished(() => second.kill())
  const read = async () => JSON.parse(await readFile(file, 'utf8').catch(() => '{}'))
  await expect.poll(read, { timeout: 10_000 }).toMatchObject({ id, status: 'COMPLETED' })
})

test('after a restart every chat is as it was, and goes on (I1)', async () => {
  const data = await directory()
  const box = tools()
  const settings = () => ({ model: steps(), tools: box.all, builtIns: false })
  const before = await serve(settings(), { data })
  await (await before.start('idle', 'hello')).rest()
  const edited = await before.start('idle', 'hello again')
  await edited.rest()
  await (
    await before.edit('idle', edited.response.headers.get('x-interaction-id')!, 'better')
  ).rest()
  const waits = await before.start('waits', 'pay')
  const { approval_id } = find(await waits.until('approval_required'), 'approval_required')
  await before.recorded('waits', 'run.waiting')
  const id = waits.response.headers.get('x-interaction-id')!
  waits.leave()
  const all = async (server: typeof before) => ({
    idle: await server.chat('idle', '?include=superseded'),
    waits: await server.chat('waits'),
    list: await (await server.request('GET', '/chats')).json(),
  })
  const then = await all(before)
  await before.close()

  const after = await serve(settings(), { data })
  expect(await all(after)).toEqual(then)
  const joined = await after.join('waits', id)
  expect(names(await joined.until('approval_required'))).toEqual([
    'interaction_started',
    'approval_required',
  ])
  expect((await after.approve('waits', id, { approval_id, approved: true })).status).toBe(200)
  expect((await joined.rest()).at(-1)?.data.status).toBe('COMPLETED')
  expect(box.sent).toHaveLength(1)
  await after.close()
})

/** A disk of its own, small enough to fill. */
function smallDisk(path: string): string | undefined {
  try {
    mkdirSync(path, { recursive: true })
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=2m', 'tmpfs', path], { stdio: 'ignore' })
    onTestFinished(() => {
      execFileSync('umount', ['-l', path], { stdio: 'ignore' })
    })
    return path
  } catch {
    return undefined
  }
}

test('a full disk refuses new work with 503, still reads, and goes on by itself', async ({
  skip,
}) => {
  const outside = await directory()
  const data = process.platform === 'linux' ? smallDisk(join(outside, 'disk')) : undefined
  if (data === undefined) return skip('needs the right to mount a small disk (root on Linux)')
  const server = await startServer({ HANDRAIL_DATA: data, HANDRAIL_SPOOL: join(outside, 'spool') })
  onTestFinished(() => server.kill())
  const client = chatsClient(server.url)
  await (await client.start('c', 'hello')).rest()
  const before = await client.chat('c')

  const filler = join(data, 'filler')
  fill(filler)
  // More than the rest of a page that is already taken.
  const long = { user_message: `count to 3 ${' '.repeat(20_000)}` }
  const refused = await client.request('POST', '/chats/c/interactions', long)
  expect(refused.headers.get('retry-after')).toMatch(/^\d+$/)
  expect(await problem(refused)).toMatchObject({
    http: 503,
    code: 'store_unavailable',
    retryable: true,
  })
  const created = await client.request('POST', '/chats/d/interactions', long)
  expect(created.status).toBe(503)
  expect(await client.chat('c')).toEqual(before)
  expect((await client.request('GET', '/chats/d')).status).toBe(404)
  expect((await client.request('GET', '/healthz')).status).toBe(200)

  rmSync(filler)
  const frames = await (await client.start('c', 'count to 3')).rest()
  expect(frames.at(-1)?.data.status).toBe('COMPLETED')
  expect(find(frames, 'answer').content).toBe('1 2 3')
  expect((await client.chat('c')).interactions).toHaveLength(2)
})

test('a run that meets a full disk waits for it, and finishes by itself', async ({ skip }) => {
  const outside = await directory()
  const data = process.platform === 'linux' ? smallDisk(join(outside, 'disk')) : undefined
  if (data === undefined) return skip('needs the right to mount a small disk (root on Linux)')
  const server = await startServer({
    HANDRAIL_DATA: data,
    HANDRAIL_SPOOL: join(outside, 'spool'),
    HANDRAIL_DEMO_DELAY_MS: '1',
  })
  onTestFinished(() => server.kill())
  const client = chatsClient(server.url)
  const stream = await client.start('c', 'count to 1000')
  await stream.until('answer_delta')
  const filler = join(data, 'filler')
  fill(filler)
  // All is said and cannot be kept; nothing may say that it is.
  let said = 0
  for await (const { event, data } of stream.frames) {
    expect(event).toBe('answer_delta')
    said++
    if (data.delta === '1000') break
  }
  expect(said).toBe(999)
  const id = stream.response.headers.get('x-interaction-id')!
  const interaction = await (await client.request('GET', `/chats/c/interactions/${id}`)).json()
  expect(interaction).toMatchObject({ status: 'RUNNING', agent_events: [] })
  rmSync(filler)
  const joined = await client.join('c', id)
  const frames = await joined.rest()
  expect(frames.at(-1)?.data.status).toBe('COMPLETED')
  expect(find(frames, 'answer').content).toMatch(/^1 2 .* 1000$/)
  expect(frames.filter(({ event }) => event === 'answer')).toHaveLength(1)
})

/** Until not a byte fits. */
function fill(path: string): void {
  let chunk = Buffer.alloc(1 << 16)
  for (;;) {
    try {
      writeFileSync(path, chunk, { flag: 'a' })
    } catch {
      if (chunk.length === 1) return
      chunk = Buffer.alloc(chunk.length >> 1)
    }
  }
}
