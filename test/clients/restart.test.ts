import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { startServer, temporaryDirectory } from '../support/server.ts'
import { coreClient, ending, httpClient, interruptsOf } from './support.ts'

/** The server's own zod; the clients bring another. */
const zod = pathToFileURL(
  createRequire(new URL('../../package.json', import.meta.url)).resolve('zod'),
)

/** Says two words, pays with a question, and tells of it; what is paid is kept outside. */
const config = (paid: string) => `
import { appendFileSync } from 'node:fs'
import { z } from '${zod}'
function* say(words) {
  for (let n = 0; n < 64; n++) yield { type: 'text', text: 'so ' } // long enough to be cut in
  yield { type: 'text', text: words }
}
const model = { name: 'm', async *stream({ messages }) {
  const last = messages.at(-1)
  if (last.role === 'user') {
    yield { type: 'reasoning', text: 'Shall I?' }
    yield* say('I ')
    yield* say('pay.')
    yield { type: 'call', callId: 'c' + messages.length, name: 'pay', input: '{"to":"ann"}' }
  } else {
    yield* say('All ')
    yield* say('done.')
  }
} }
const pay = { name: 'pay', description: 'Pays.', access: 'write', idempotent: true,
  schema: z.strictObject({ to: z.string() }), describe: () => 'Pay ann',
  run: async (_, { effectId }) => { appendFileSync(${JSON.stringify(paid)}, effectId + '\\n'); return 'paid' } }
export default { model, tools: [pay], builtIns: false }
`

async function house() {
  const { path, remove } = await temporaryDirectory()
  onTestFinished(remove)
  await mkdir(path, { recursive: true })
  const paid = join(path, 'paid.txt')
  await writeFile(join(path, 'config.mjs'), config(paid))
  await writeFile(paid, '')
  const env = {
    ...{ HANDRAIL_CONFIG: join(path, 'config.mjs'), HANDRAIL_DATA: join(path, 'data') },
    ...{ HANDRAIL_SPOOL: join(path, 'spool'), HANDRAIL_LEASE_MS: '300' },
  }
  return {
    async start(more: Record<string, string> = {}) {
      const server = await startServer({ ...env, ...more })
      onTestFinished(() => server.kill())
      return server
    },
    /** The effects that reached the world; an attempt made again has the same id. */
    paid: async () => new Set((await readFile(paid, 'utf8')).split('\n').filter(Boolean)),
  }
}

const yes = (interruptId: string) => ({
  resume: [{ interruptId, status: 'resolved' as const, payload: { approved: true } }],
})
const long = (first: string, then: string) => `assistant: ${so}${first} ${so}${then}`
const so = 'so '.repeat(64)
const asked = ['user: pay ann', 'reasoning: Shall I?', long('I', 'pay. pay({"to":"ann"})')]
const whole = [...asked, 'tool: paid', long('All', 'done.')]

/** Connects, and reads to the end of what runs. */
async function connected(url: string) {
  const client = httpClient(url, 't')
  await client.connect()
  return client
}

test('a question outlives the server: a fresh client of either kind finds and answers it', async () => {
  const { start, paid } = await house()
  const first = await start()
  const before = httpClient(first.url, 't')
  const [interrupt] = interruptsOf(await before.say('pay ann'))
  await first.kill()
  const second = await start()
  const client = await coreClient(second.url, 't')
  await client.connect()
  expect(client.agent.pendingInterrupts).toMatchObject([{ id: interrupt!.id, message: 'Pay ann' }])
  expect(client.shown()).toEqual(before.shown())
  await second.kill()
  const third = await start()
  const again = httpClient(third.url, 't')
  await again.connect()
  expect(again.agent.pendingInterrupts.map(({ id }) => id)).toEqual([interrupt!.id])
  await again.run(yes(interrupt!.id))
  expect(again.shown()).toEqual(whole)
  expect((await paid()).size).toBe(1)
})

test.for([
  ['while it thinks and speaks', 'model.pieces:1'],
  ['just after the question is written down', 'ask.raised:1'],
] as const)('killed %s: the question is asked once, nothing is shown twice', async ([, point]) => {
  const { start, paid } = await house()
  const first = await start({ HANDRAIL_CRASH: point })
  const watcher = httpClient(first.url, 't')
  await watcher.say('pay ann').catch(() => undefined)
  await first.exited
  const second = await start()
  const client = await connected(second.url)
  const [interrupt] = client.agent.pendingInterrupts
  expect(client.shown()).toEqual(asked)
  expect(client.agent.pendingInterrupts).toHaveLength(1)
  expect(await paid()).toEqual(new Set())
  await client.run(yes(interrupt!.id))
  expect(client.shown()).toEqual(whole)
  const core = await coreClient(second.url, 't')
  await core.connect()
  expect(core.shown()).toEqual(whole)
  expect((await paid()).size).toBe(1)
})

test.for([
  ['when the answer is written down', 'ask.answered:1'],
  ['before the call is made', 'effect.intended:2'],
  ['after the call was made, before it is known', 'effect.ran:2'],
  ['while it tells of it', 'model.pieces:5'],
] as const)('killed %s: answered again it is paid once, and told once', async ([, point]) => {
  const { start, paid } = await house()
  const first = await start({ HANDRAIL_CRASH: point })
  const page = httpClient(first.url, 't')
  const stream = await page.say('pay ann')
  const [interrupt] = interruptsOf(stream)
  await page.run(yes(interrupt!.id)).catch(() => undefined)
  await first.exited
  const second = await start()
  // A page that does not know whether its answer arrived sends it again.
  const client = httpClient(second.url, 't')
  client.agent.setMessages(page.agent.messages.slice(0, 1))
  const again = await client.run(yes(interrupt!.id))
  expect(ending(again).type).toBe('RUN_FINISHED')
  const seen = await connected(second.url)
  expect(seen.shown()).toEqual(whole)
  const core = await coreClient(second.url, 't')
  await core.connect()
  expect(core.shown()).toEqual(whole)
  expect((await paid()).size).toBe(1)
})
