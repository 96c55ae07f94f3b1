import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { zohoCrm } from './client.ts'

type Answer = [status: number, body?: object]

/** Answers as Zoho documents it: tokens at `/oauth/v2/token`, records under `/crm/v8`. */
async function zoho(answer: (path: string, request: IncomingMessage, body: string) => Answer) {
  const asked: string[] = []
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    const path = request.url!.split('?')[0]!
    asked.push(`${request.headers.authorization ?? 'none'} ${path}`)
    const [status, json] = answer(path, request, body)
    response.writeHead(status, { 'content-type': 'application/json' })
    response.end(json && JSON.stringify(json))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked }
}

const id = '5000000000000000123'
const { signal } = new AbortController()
const crmAt = (url: string, now = () => 0) => {
  const access = { clientId: 'id', clientSecret: 'secret', refreshToken: 'refresh' }
  return zohoCrm({ ...access, accountsUrl: url, apiUrl: url }, now)
}
const record: Answer = [200, { data: [{ Account_Name: 'Acme', Owner: { name: 'Ann' } }] }]
const list: Record<string, Answer> = {
  [`/crm/v8/Accounts/${id}`]: record,
  [`/crm/v8/Accounts/${id}/Deals`]: [200, { data: [{ Deal_Name: 'Big', Stage: 'Proposal' }] }],
  [`/crm/v8/Accounts/${id}/Notes`]: [204],
}

test('reads an account with its deals and notes, by a token that it refreshes', async () => {
  let tokens = 0
  const { url, asked } = await zoho((path, _, body) => {
    if (path !== '/oauth/v2/token') return list[path] ?? [404]
    expect(Object.fromEntries(new URLSearchParams(body))).toEqual({
      grant_type: 'refresh_token',
      client_id: 'id',
      client_secret: 'secret',
      refresh_token: 'refresh',
    })
    return [200, { access_token: `t${++tokens}`, expires_in: 3_600, api_domain: 'x' }]
  })
  let now = 0
  const crm = crmAt(url, () => now)
  expect(await crm.account(id, signal)).toMatchObject({
    account_id: id,
    source: 'zoho',
    name: 'Acme',
    owner: 'Ann',
    deals: [{ name: 'Big', stage: 'Proposal', amount: null }],
    notes: [],
  })
  await crm.account(id, signal)
  expect(tokens, 'one token for all of that').toBe(1)
  now = 3_600_000
  await crm.account(id, signal)
  expect(tokens).toBe(2)
  expect(asked.at(-1)).toMatch(/^Zoho-oauthtoken t2 /)
})

test('asks once more where a token was taken back, and then gives up', async () => {
  let tokens = 0
  const { url } = await zoho((path, request) => {
    if (path === '/oauth/v2/token')
      return [200, { access_token: `t${++tokens}`, expires_in: 3_600 }]
    const old = request.headers.authorization !== 'Zoho-oauthtoken t2'
    return old ? [401, { code: 'INVALID_TOKEN', message: 'invalid' }] : (list[path] ?? [404])
  })
  expect(await crmAt(url).account(id, signal)).toMatchObject({ name: 'Acme' })
  tokens = 5
  await expect(crmAt(url).account(id, signal)).rejects.toMatchObject({ code: 'authentication' })
})

test('says what is wrong: credentials, limits, nothing there, an id that is none', async () => {
  const refused = await zoho(() => [200, { error: 'invalid_client' }])
  await expect(crmAt(refused.url).account(id, signal)).rejects.toThrow('invalid_client')
  const busy = await zoho((path) =>
    path === '/oauth/v2/token'
      ? [200, { access_token: 't', expires_in: 3_600 }]
      : [429, { code: 'TOO_MANY_REQUESTS', message: 'slow down' }],
  )
  await expect(crmAt(busy.url).account(id, signal)).rejects.toMatchObject({ code: 'rate_limit' })
  const empty = await zoho((path) =>
    path === '/oauth/v2/token' ? [200, { access_token: 't', expires_in: 3_600 }] : [204],
  )
  expect(await crmAt(empty.url).account(id, signal)).toBeUndefined()
  expect(await crmAt(empty.url).account('../users', signal)).toBeUndefined()
  expect(empty.asked.filter((one) => one.includes('users'))).toEqual([])
})
