import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { startServer, temporaryDirectory } from '../../support/server.ts'
import { metaEvent, openPage, succeeded } from './support.ts'

/** The server's own zod; the clients bring another. */
const zod = pathToFileURL(
  createRequire(new URL('../../../package.json', import.meta.url)).resolve('zod'),
)

/** Says something long enough to be cut in, pays with a question, and tells of it. */
const config = (paid: string) => `
import { appendFileSync } from 'node:fs'
import { z } from '${zod}'
function* say(words) {
  for (let n = 0; n < 64; n++) yield { type: 'text', text: 'so ' }
  yield { type: 'text', text: words }
}
const model = { name: 'm', async *stream({ messages }) {
  const last = messages.at(-1)
  if (last.role === 'user') {
    yield* say('I pay.')
    yield { type: 'call', callId: 'c' + messages.length, name: 'pay', input: '{"to":"ann"}' }
  } else yield* say('All done.')
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

const long = (words: string) => `assistant: ${'so '.repeat(64)}${words}`
const asked = ['user: pay ann', long('I pay.'), 'call pay({"to":"ann"})']
const whole = [...asked, 'result paid', long('All done.')]

test('a question outlives the server: a page that loads afterwards finds and answers it', async () => {
  const { start, paid } = await house()
  const first = await start()
  const before = openPage(first.url)
  succeeded(await before.say('pay ann'))
  expect(before.interrupt!.value).toMatchObject({ tool: 'pay', title: 'Pay ann' })
  await first.kill()
  const second = await start()
  const page = openPage(second.url)
  expect(await page.load()).toMatchObject({ error: undefined, exists: true })
  expect(page.shown()).toEqual(asked)
  succeeded(await page.complete())
  expect(page.interrupt).toEqual(before.interrupt)
  // The question as the first server told it is still the one that is open.
  succeeded(await page.complete({ metaEvents: [metaEvent(before.interrupt!.text, 'yes')] }))
  expect(page.shown()).toEqual(whole)
  expect((await paid()).size).toBe(1)
})

test('killed while it speaks: the page that comes back joins the run, nothing is shown twice', async () => {
  const { start, paid } = await house()
  const first = await start({ HANDRAIL_CRASH: 'model.pieces:1' })
  const cut = openPage(first.url)
  const { error } = await cut.say('pay ann')
  expect(error).toBeDefined() // the connection was cut
  await first.exited
  const second = await start()
  const page = openPage(second.url)
  await page.load()
  succeeded(await page.complete())
  expect(page.shown()).toEqual(asked)
  expect(page.interrupt!.value).toMatchObject({ tool: 'pay' })
  expect(await paid()).toEqual(new Set())
  succeeded(await page.resolve('yes'))
  expect(page.shown()).toEqual(whole)
})

test('killed after the call was made, before it is known: answered again it is paid once, and told once', async () => {
  const { start, paid } = await house()
  const first = await start({ HANDRAIL_CRASH: 'effect.ran:2' })
  const page = openPage(first.url)
  await page.say('pay ann')
  const { text } = page.interrupt!
  const list = [...page.messages]
  await page.resolve('yes')
  await first.exited
  const second = await start()
  // A page that does not know whether its answer arrived sends it again.
  const again = openPage(second.url)
  again.messages = list
  succeeded(await again.complete({ metaEvents: [metaEvent(text, 'yes')] }))
  expect(again.shown()).toEqual(whole)
  const seen = openPage(second.url)
  await seen.load()
  expect(seen.shown()).toEqual(whole)
  expect((await paid()).size).toBe(1)
})
