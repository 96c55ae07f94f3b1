import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { keyFrom, signatureOf } from '../../src/webhooks/signature.ts'
import { endpoint, type Received, webhookSecret } from '../support/endpoint.ts'
import { office } from '../support/office.ts'

type Verify = (secret: string, headers: object, body: string) => boolean

/** The snippet of the documentation, as it is printed there. */
async function documented(): Promise<Verify> {
  const page = await readFile(new URL('../../docs/approvals.md', import.meta.url), 'utf8')
  const code = /```js\n([^`]*export function verify[^`]*)```/.exec(page)![1]!
  const module = `data:text/javascript,${encodeURIComponent(code)}`
  return ((await import(module)) as { verify: Verify }).verify
}

const hooked = (url: string, more: Record<string, string> = {}) => ({
  env: {
    HANDRAIL_WEBHOOK_URL: url,
    HANDRAIL_WEBHOOK_SECRET: webhookSecret,
    HANDRAIL_WEBHOOK_RETRY_MS: '200',
    HANDRAIL_PUBLIC_URL: 'https://handrail.example/',
    HANDRAIL_LEASE_MS: '1000',
    ...more,
  },
})

const idsOf = (received: readonly Received[]) =>
  received.map(({ headers }) => headers['webhook-id'])
const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

test('a new question is told, signed, and with nothing of the chat', async () => {
  const hook = await endpoint()
  const all = await office({}, hooked(hook.url))
  const { ask } = await all.waiting()
  const [notice] = await hook.come(1)
  expect(notice!.json).toEqual({
    type: 'approval.raised',
    timestamp: expect.any(String),
    data: {
      ...{ id: ask, kind: 'approval', state: 'pending', title: 'Send 5 to “ann”', tool: 'send' },
      ...{ agent: 'assistant', tenant: 'default', owner: 'ann', at_timeout: 'reject' },
      ...{ raised_at: expect.any(String), deadline: expect.any(String) },
      link: `https://handrail.example/approvals/${ask}`,
    },
  })
  const verify = await documented()
  expect(verify(webhookSecret, notice!.headers, notice!.body)).toBe(true)
  expect(verify(webhookSecret, notice!.headers, notice!.body.replace('5', '6'))).toBe(false)
  expect(verify(webhookSecret.toLowerCase(), notice!.headers, notice!.body)).toBe(false)
  const plain = 'a secret in plain text, of 24 bytes or more'
  const { 'webhook-id': id, 'webhook-timestamp': at } = notice!.headers
  const signed = signatureOf(keyFrom(plain), String(id), String(at), notice!.body)
  const headers = { ...notice!.headers, 'webhook-signature': signed }
  expect(verify(plain, headers, notice!.body)).toBe(true)
  expect(verify(webhookSecret, headers, notice!.body)).toBe(false)
  const old = { ...notice!.headers, 'webhook-timestamp': '1000' }
  expect(verify(webhookSecret, old, notice!.body)).toBe(false)
  await all.server.recorded(await all.threadOf(), 'hook.done')
  await sleep(700)
  expect(hook.received).toHaveLength(1)
})

test('an endpoint that fails is tried again, as the same notice, and the run does not notice', async () => {
  const hook = await endpoint((nth) => [500, 302, 204][nth - 1] ?? 204)
  const all = await office({}, hooked(hook.url))
  const { ask, stream } = await all.waiting()
  const received = await hook.come(3)
  expect(idsOf(received)).toEqual([`${ask}.raised`, `${ask}.raised`, `${ask}.raised`])
  expect(received.map(({ path }) => path)).toEqual(['/hook', '/hook', '/hook']) // not where 302 said
  await all.decide('carl', ask, { approved: true })
  await stream.rest()
  expect(all.box.sent).toHaveLength(1)
})

test('an endpoint that hangs holds nobody up', async () => {
  const hook = await endpoint(() => 'hang')
  const all = await office({}, hooked(hook.url))
  for (let n = 0; n < 12; n++) {
    const { ask, stream } = await all.waiting(`c${n}`)
    await all.decide('carl', ask, { approved: true })
    await stream.rest()
  }
  expect(all.box.sent).toHaveLength(12)
  const since = Date.now()
  await all.server.close() // nor does it keep the server from stopping
  expect(Date.now() - since).toBeLessThan(8_000)
})

test('what was decided before it could be told is not told any more', async () => {
  let up = false
  const hook = await endpoint(() => (up ? 204 : 503))
  const all = await office({}, hooked(hook.url))
  const { ask, stream } = await all.waiting()
  await hook.come(1)
  await all.decide('carl', ask, { approved: false })
  up = true
  await stream.rest()
  const count = hook.received.length
  await sleep(1_500)
  expect(hook.received).toHaveLength(count)
})

test('how it ended is told too, where that is wanted', async () => {
  const hook = await endpoint()
  const all = await office({}, hooked(hook.url, { HANDRAIL_WEBHOOK_EVENTS: 'all' }))
  const { ask, stream } = await all.waiting()
  await hook.come(1)
  await all.decide('carl', ask, { approved: true })
  const [, second] = await hook.come(2)
  expect(second!.headers['webhook-id']).toBe(`${ask}.settled`)
  expect(second!.json).toMatchObject({
    type: 'approval.settled',
    data: { id: ask, state: 'approved', decided_by: 'carl' },
  })
  await stream.rest()
})

test('nobody is told any more once the address is gone', async () => {
  const hook = await endpoint(() => 503)
  const first = await office({}, hooked(hook.url))
  await first.waiting()
  await hook.come(1)
  const { data } = first.server
  await first.server.close()
  const again = await office({}, { data })
  await again.server.recorded(await again.threadOf(), 'hook.done')
  const entries = await again.server.journal(await again.threadOf())
  expect(entries.at(-1)).toMatchObject({ kind: 'hook.done', body: { outcome: 'given_up' } })
})
