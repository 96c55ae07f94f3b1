import { afterAll, beforeAll, expect, test } from 'vitest'
import { chatsClient } from '../../support/chats.ts'
import { find } from '../../support/tools.ts'
import { httpClient } from '../support.ts'
import { openCluster, type TestCluster, until } from './support.ts'

const tenants = ['acme', 'bolt', 'cord'] as const
const keyOf = (tenant: string) => `key-of-the-tenant-${tenant}`
const limits = { total: 4, perTenant: 2, perServer: 2 }

let all: TestCluster

beforeAll(async () => {
  all = await openCluster({
    env: () => ({
      HOST: '127.0.0.1',
      HANDRAIL_API_KEYS: tenants.map((one) => `${keyOf(one)}=${one}/ann`).join(),
      HANDRAIL_TOTAL_LEGS: String(limits.total),
      HANDRAIL_TENANT_LEGS: String(limits.perTenant),
      HANDRAIL_MAX_LEGS: String(limits.perServer),
    }),
  })
}, 120_000)

afterAll(() => all.stop())

const headersOf = (tenant: string) => ({ authorization: `Bearer ${keyOf(tenant)}` })
const chatsOf = (n: number, tenant: string) =>
  chatsClient(all.members[n % 3]!.url, headersOf(tenant))

/** The most answers that were being given at once, of those whose text contains the words. */
function most(words: string): number {
  let now = 0
  let highest = 0
  for (const { what, about } of all.marks()) {
    if (!about.includes(words)) continue
    now += what === 'model' ? 1 : -1
    highest = Math.max(highest, now)
  }
  return highest
}

test('three servers together drive no more legs than all, a tenant and each of them may', async () => {
  const streams = Array.from({ length: 18 }, async (_, n) => {
    const tenant = tenants[Math.floor(n / 3) % 3]!
    return await chatsOf(n, tenant).start(`chat-${n}`, `tell 60 ${tenant}`)
  })
  for (const stream of await Promise.all(streams))
    expect(find(await stream.rest(), 'interaction_complete').status).toBe('COMPLETED')
  expect(most('tell')).toBe(limits.total)
  for (const tenant of tenants) expect(most(tenant)).toBe(limits.perTenant)
})

test('work for which its server has no room is done by another, without the secrets that it brought', async () => {
  const [a] = all.members
  const busy = await Promise.all(
    ['one', 'two'].map((chat) => chatsOf(0, 'acme').start(chat, 'tell 5000')),
  )
  await Promise.all(busy.map((stream) => stream.until('answer_delta')))
  const headers = { ...headersOf('bolt'), 'x-vendor-token': 'sesame' }
  const client = httpClient(a.url, 'full', { agentId: 'keeper', headers })
  await client.say('now')
  expect(client.errors).toEqual(['authentication'])
  const [secret] = all.marks('secret', 'now undefined')
  expect(secret!.server).not.toBe('A')
  for (const [n, chat] of ['one', 'two'].entries()) {
    const id = busy[n]!.response.headers.get('x-interaction-id')!
    await chatsOf(1, 'acme').cancel(chat, id)
    await busy[n]!.rest()
  }
  // There is room again: the same is done where it comes in.
  await until(() => all.marks('told', 'tell 5000').length === 2)
  await httpClient(a.url, 'free', { agentId: 'keeper', headers }).say('now')
  expect(all.marks('secret', 'now sesame')).toMatchObject([{ server: 'A' }])
})
