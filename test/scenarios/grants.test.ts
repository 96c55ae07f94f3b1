import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { toolLoop } from '../../src/agents/tool-loop/agent.ts'
import type { PolicyRule } from '../../src/core/policy.ts'
import { sha256 } from '../../src/lib/canonical.ts'
import { call, scriptedModel, text } from '../../src/models/scripted.ts'
import type { Settings } from '../../src/settings.ts'
import { agui } from '../support/agui.ts'
import { chatsClient } from '../support/chats.ts'
import { gate } from '../support/gate.ts'
import { generate } from '../support/graphql.ts'
import { type Served, serve } from '../support/serve.ts'
import { temporaryDirectory } from '../support/server.ts'
import { find, names, problem, said, tools } from '../support/tools.ts'
import { warpClock } from '../support/warp-clock.ts'

/** A model that sends once for each message of the user: as much as it says, 5 otherwise. */
const payer = () =>
  scriptedModel((request) => {
    const last = request.messages.at(-1)!
    if (last.role !== 'user') return [text('Paid.')]
    const amount = Number(/\d+/.exec(said({ messages: [last] })[0]!)?.[0] ?? 5)
    return [call(last.id, 'send', { to: 'ann', amount })]
  })

interface Options {
  policy?: PolicyRule[]
  data?: string
  clock?: ReturnType<typeof warpClock>
  tools?: Settings['tools']
  env?: Record<string, string>
}

async function paying({ policy = [], data, clock, tools: own, env }: Options = {}) {
  const box = tools()
  const model = payer()
  const settings = { model, tools: own ?? box.all, builtIns: false, policy }
  const server = await serve(settings, {
    ...(data !== undefined && { data }),
    ...(clock && { clock }),
    env: { HANDRAIL_LEASE_MS: '3600000', ...env },
  })
  return { ...server, ...box, model }
}

/** Says something and approves it with more. */
async function approved(server: Served, more: object, words = 'pay') {
  const stream = await server.start('c', words)
  const { approval_id } = find(await stream.until('approval_required'), 'approval_required')
  const interaction = stream.response.headers.get('x-interaction-id')!
  const response = await server.approve('c', interaction, { approval_id, approved: true, ...more })
  expect(response.status).toBe(200)
  await stream.rest()
}

/** Whether the next call is asked about; if it is, the run is cancelled. */
async function asks(server: Served, words = 'again'): Promise<boolean> {
  const stream = await server.start('c', words)
  const interaction = stream.response.headers.get('x-interaction-id')!
  for await (const { event } of stream.frames) {
    if (event !== 'approval_required') continue
    await server.cancel('c', interaction)
    await stream.rest()
    return true
  }
  return false
}

// biome-ignore lint/suspicious/noExplicitAny: the wire's JSON, looked into by assertions
async function grantsOf(server: Served): Promise<any[]> {
  const response = await server.request('GET', '/threads/c/grants')
  expect(response.status).toBe(200)
  return ((await response.json()) as { grants: unknown[] }).grants
}

describe('what is remembered', () => {
  test.each<[unknown, boolean]>([
    [true, false],
    ['chat', false],
    [{ minutes: 10 }, false],
    [false, true],
    ['once', true],
  ])('remember %j: asked again %s', async (remember, again) => {
    const server = await paying()
    await approved(server, { remember })
    expect(await asks(server)).toBe(again)
    expect(server.sent).toHaveLength(again ? 1 : 2)
    expect(await grantsOf(server)).toHaveLength(again ? 0 : 1)
  })

  test('a call made under a grant names the grant, on the chats wire, in the outline and in the workflow', async () => {
    const server = await paying()
    await approved(server, { remember: true })
    const [{ id: grant_id }] = await grantsOf(server)
    const stream = await server.start('c', 'again')
    const granted = find(await stream.rest(), 'tool_call')
    expect(granted).toMatchObject({ tool_name: 'send', grant_id })
    const run = stream.response.headers.get('x-interaction-id')!
    const read = async (path: string) => await (await server.request('GET', path)).json()
    expect(await read(`/chats/c/interactions/${run}`)).toMatchObject({
      agent_events: expect.arrayContaining([expect.objectContaining({ grant_id })]),
    })
    const { calls } = (await read('/copilotkit/threads/c/outline')) as { calls: object }
    const marked = Object.values(calls).filter((one) => 'grantId' in one)
    expect(marked).toMatchObject([{ grantId: grant_id }])
    const body = { session_id: 'c', messages: [{ role: 'user', content: 'once more' }] }
    const told = await (await server.open('POST', '/copilotkit/chat', body)).rest()
    expect(find(told, 'tool_call').data).toMatchObject({ grant_id })
  })

  test.each([
    { minutes: 0 },
    { minutes: 1.5 },
    { minutes: 1e9 },
    { hours: 1 },
    'ever',
    5,
    { chat: 1 },
  ])('remember %j is refused, and nothing is decided', async (remember) => {
    const server = await paying()
    const stream = await server.start('c', 'pay')
    const { approval_id } = find(await stream.until('approval_required'), 'approval_required')
    const interaction = stream.response.headers.get('x-interaction-id')!
    await server.recorded('c', 'run.waiting')
    const before = (await server.journal('c')).length
    const body = { approval_id, approved: true, remember }
    const response = await server.approve('c', interaction, body)
    expect(await problem(response)).toMatchObject({ http: 400, code: 'invalid_request' })
    expect(await server.journal('c')).toHaveLength(before)
    stream.leave()
  })

  test('ends with its minutes, to the millisecond, and is shown until then', async () => {
    const clock = warpClock()
    const server = await paying({ clock })
    await approved(server, { remember: { minutes: 10 } })
    const [grant] = await grantsOf(server)
    expect(grant).toMatchObject({ tool: 'send', givenBy: 'local', inForce: true })
    expect(grant.rule).toBe('everything else is asked about')
    const left = Date.parse(grant.until) - clock.now()
    expect(left).toBeLessThanOrEqual(600_000)
    expect(await asks(server)).toBe(false)
    clock.advance(Date.parse(grant.until) - clock.now())
    expect(await grantsOf(server)).toEqual([])
    expect(await asks(server)).toBe(true)
  })

  test('outlives a restart', async () => {
    const data = await temporaryDirectory()
    const first = await paying({ data: data.path })
    await approved(first, { remember: 'chat' })
    await first.close()
    const second = await paying({ data: data.path })
    expect(await asks(second)).toBe(false)
    expect(await grantsOf(second)).toHaveLength(1)
    await second.close()
    await data.remove()
  })

  test('holds for what the same rule asks about, and not for what another does', async () => {
    const policy: PolicyRule[] = [
      { name: 'large sums', arguments: { amount: { over: 50 } }, decision: 'ask' },
    ]
    const server = await paying({ policy })
    await approved(server, { remember: 'chat' })
    expect(await asks(server, 'pay 20')).toBe(false)
    expect(await asks(server, 'pay 90')).toBe(true)
    expect(server.sent.map(({ amount }) => amount)).toEqual([5, 20])
  })

  test('is of a rule, not of its place: not of the one that stands there after a change', async () => {
    const data = await temporaryDirectory()
    const small: PolicyRule = {
      tool: 'send',
      arguments: { amount: { under: 10 } },
      decision: 'ask',
    }
    const large: PolicyRule = { tool: 'send', arguments: { amount: { over: 9 } }, decision: 'ask' }
    const first = await paying({ data: data.path, policy: [small, large] })
    await approved(first, { remember: 'chat' })
    await first.close()
    const second = await paying({ data: data.path, policy: [large, small] })
    expect(await asks(second, 'pay 5')).toBe(false)
    expect(await asks(second, 'pay 90')).toBe(true)
    expect(await grantsOf(second)).toMatchObject([{ inForce: true }])
    await second.close()
    const third = await paying({ data: data.path, policy: [large] })
    expect(await grantsOf(third)).toMatchObject([{ inForce: false }])
    await third.close()
    await data.remove()
  })

  test('is of one agent: another one on the chat, with other rules or a tool of that name, asks', async () => {
    const box = tools()
    const act = { ...box.send, run: async () => 'done by another tool' }
    const clerk = {
      agent: toolLoop({ name: 'clerk' }),
      toolPermissions: { look: 'deny' as const },
      tools: box.all,
    }
    const boss = { agent: toolLoop({ name: 'boss' }), tools: [act] }
    const policy: PolicyRule[] = [
      { tool: 'send', arguments: { amount: { under: 10 } }, decision: 'ask' },
      { tool: 'send', arguments: { amount: { over: 9 } }, decision: 'ask' },
    ]
    const server = await serve({ model: payer(), builtIns: false, policy, agents: [clerk, boss] })
    await approved(server, { remember: 'chat' })
    expect(await grantsOf(server)).toMatchObject([{ agent: 'clerk', rule: 'policy.1' }])
    expect(await asks(server, 'pay 6')).toBe(false)
    for (const words of ['pay 7', 'pay 90']) {
      const messages = [{ role: 'user', content: words }]
      const body = { messages, session_id: 'c', agent: 'boss' }
      const stream = await server.open('POST', '/copilotkit/chat', body)
      const frames = await stream.until('approval_required')
      await server.cancel('c', frames[0]!.data.run_id)
      await stream.rest()
    }
    expect(box.sent.map(({ amount }) => amount)).toEqual([5, 6])
  })

  test('ends when the policy denies, and when it asks other people', async () => {
    const data = await temporaryDirectory()
    const rule = { name: 'sending', tool: 'send', decision: 'ask' } as const
    const run = async (policy: PolicyRule[], act: (server: Served) => Promise<void>) => {
      const server = await paying({ data: data.path, policy })
      await act(server)
      await server.close()
      return server
    }
    await run([rule], (server) => approved(server, { remember: 'chat' }))
    const denied = await run(
      [{ ...rule, decision: 'deny', reason: 'Not today.' }],
      async (server) => {
        const frames = await (await server.start('c', 'again')).rest()
        expect(find(frames, 'denied')).toMatchObject({
          rule: 'sending',
          tool: 'send',
          reason: 'Not today.',
        })
        expect(find(frames, 'tool_result').tool_output).toBe('This call is not allowed: Not today.')
      },
    )
    expect(denied.sent).toEqual([])
    await run([{ ...rule, audience: ['finance'] }], async (server) =>
      expect(await asks(server)).toBe(true),
    )
    await run([rule], async (server) => expect(await asks(server)).toBe(false))
    await data.remove()
  })

  test('is of one tool: not of another with its name', async () => {
    const data = await temporaryDirectory()
    const first = await paying({ data: data.path })
    await approved(first, { remember: 'chat' })
    await first.close()
    const other = { ...tools().send, server: 'evil', origin: 'evil' }
    const second = await paying({ data: data.path, tools: [other] })
    expect(await grantsOf(second)).toMatchObject([{ inForce: false }])
    expect(await asks(second)).toBe(true)
    await second.close()
    await data.remove()
  })

  test('is not given for a tool that changed between the question and the answer', async () => {
    const data = await temporaryDirectory()
    const first = await paying({ data: data.path })
    const stream = await first.start('c', 'pay')
    const { approval_id } = find(await stream.until('approval_required'), 'approval_required')
    const interaction = stream.response.headers.get('x-interaction-id')!
    await first.recorded('c', 'run.waiting')
    stream.leave()
    await first.close()

    const schema = z.strictObject({ to: z.string(), amount: z.number() })
    const changed = { ...tools().send, schema }
    const second = await paying({ data: data.path, tools: [changed] })
    const joined = await second.join('c', interaction)
    await second.approve('c', interaction, { approval_id, approved: true, remember: true })
    await joined.rest()
    expect(await grantsOf(second)).toEqual([])
    await second.close()
    await data.remove()
  })
})

describe('a grant is taken back', () => {
  test('and the next call asks', async () => {
    const server = await paying()
    await approved(server, { remember: 'chat' })
    const [{ id }] = await grantsOf(server)
    expect((await server.request('DELETE', `/threads/c/grants/${id}`)).status).toBe(204)
    expect(await grantsOf(server)).toEqual([])
    expect(await asks(server)).toBe(true)
    const again = await server.request('DELETE', `/threads/c/grants/${id}`)
    expect(await problem(again)).toMatchObject({ http: 404, code: 'grant_not_found' })
    const { actor } = (await server.journal('c')).find(({ kind }) => kind === 'grant.revoked')!
    expect(actor).toMatchObject({ type: 'user', id: 'local' })
  })

  test('once, by whoever comes first', async () => {
    const server = await paying()
    await approved(server, { remember: 'chat' })
    const [{ id }] = await grantsOf(server)
    const take = () => server.request('DELETE', `/threads/c/grants/${id}`)
    const statuses = (await Promise.all([take(), take(), take()])).map(({ status }) => status)
    expect(statuses.sort()).toEqual([204, 404, 404])
    const kinds = (await server.journal('c')).map(({ kind }) => kind)
    expect(kinds.filter((kind) => kind === 'grant.revoked')).toHaveLength(1)
  })

  test('while calls wait for their turn: what has not begun does not begin by it', async () => {
    let began = 0
    const held = gate()
    const slow = { ...tools().send }
    const many = (id: string) =>
      Array.from({ length: 12 }, (_, i) => call(`${id}${i}`, 'send', { to: 'ann', amount: i }))
    const model = scriptedModel((request) => {
      const last = request.messages.at(-1)!
      if (last.role !== 'user') return [text('Paid.')]
      return said({ messages: [last] })[0]!.includes('many')
        ? many(last.id)
        : many(last.id).slice(0, 1)
    })
    const server = await serve({ model, tools: [slow], builtIns: false })
    await approved(server, { remember: 'chat' })
    const [{ id }] = await grantsOf(server)
    slow.run = async () => {
      began++
      await held.pass()
      return 'sent'
    }
    const stream = await server.start('c', 'many')
    while (began < 8) await new Promise((resolve) => setTimeout(resolve, 5))
    expect((await server.request('DELETE', `/threads/c/grants/${id}`)).status).toBe(204)
    held.open()
    const frames = await stream.until('approval_required')
    expect(names(frames).filter((name) => name === 'tool_result').length).toBeLessThanOrEqual(8)
    await server.recorded('c', 'run.waiting')
    expect(began).toBe(8)
    const entries = await server.journal('c')
    const revoked = entries.findIndex(({ kind }) => kind === 'grant.revoked')
    const late = entries.slice(revoked).filter(({ kind }) => kind === 'effect.intended')
    expect(late).toEqual([])
    stream.leave()
  })

  test('elsewhere, in the very moment that a call begins by it', async () => {
    const server = await paying({ env: { HANDRAIL_AUDIT: 'off' } }) // the entry below is not linked
    await approved(server, { remember: 'chat' })
    const [{ id }] = await grantsOf(server)
    const { store } = server.server
    const append = store.append.bind(store)
    let between = 0
    // Another server comes first: what the driver knows is old, and only the store can tell.
    store.append = async (threadId, entries, guard) => {
      if (between === 0 && entries.some(({ body }) => body.includes(`"grantId":"${id}"`))) {
        between++
        const { runId: _, legId: __, ...envelope } = entries[0]!
        const body = JSON.stringify({ grantId: id })
        const told = { id: 'e_elsewhere', tx: 'tx_elsewhere', fence: 0, body, digest: sha256(body) }
        const marks = { facts: { [`grant:${id}`]: null } }
        await append(threadId, [{ ...envelope, ...told, kind: 'grant.revoked', marks }], {})
      }
      return await append(threadId, entries, guard)
    }
    expect(await asks(server)).toBe(true)
    expect(between).toBe(1)
    expect(server.sent).toHaveLength(1)
  })

  test('by its owner alone', async () => {
    const env = { HANDRAIL_API_KEYS: 'ann-key-0123456789=ann,bob-key-0123456789=bob' }
    const server = await paying({ env })
    const as = (key: string) => ({ authorization: `Bearer ${key}-key-0123456789` })
    const ann = { ...server, ...chatsClient(server.url, as('ann')) }
    const bob = { ...server, ...chatsClient(server.url, as('bob')) }
    await approved(ann, { remember: 'chat' })
    const [{ id }] = await grantsOf(ann)
    for (const [method, path] of [
      ['GET', '/threads/c/grants'],
      ['DELETE', `/threads/c/grants/${id}`],
    ] as const) {
      const response = await bob.request(method, path)
      expect(await problem(response)).toMatchObject({ http: 404, code: 'thread_not_found' })
    }
    await bob.start('c', 'hello').then((stream) => stream.leave())
    const stolen = await bob.request('DELETE', `/threads/c/grants/${id}`)
    expect(await problem(stolen)).toMatchObject({ http: 404, code: 'grant_not_found' })
    expect(await grantsOf(ann)).toHaveLength(1)
    const none = await fetch(`${server.url}/threads/c/grants`)
    expect(none.status).toBe(401)
  })
})

describe('on every wire', () => {
  test('an AG-UI resume gives one for some minutes', async () => {
    const server = await paying()
    const message = { id: 'u1', role: 'user', content: 'pay' }
    const events = await agui(server.url, { messages: [message] })
    const { interrupts } = events.at(-1).outcome
    const payload = { approved: true, remember: { minutes: 5 } }
    const resume = [{ interruptId: interrupts[0].id, status: 'resolved', payload }]
    expect(interrupts[0].responseSchema.properties.remember.anyOf).toHaveLength(3)
    await agui(server.url, { runId: 'r2', messages: [message], resume })
    expect(await grantsOf(server)).toMatchObject([{ tool: 'send', until: expect.any(String) }])
    expect(await asks(server)).toBe(false)
    const { actor } = (await server.journal('c')).find(({ kind }) => kind === 'grant.given')!
    expect(actor).toMatchObject({ id: 'local', wire: 'agui' })
  })

  test('a GraphQL interrupt gives one for the chat', async () => {
    const server = await paying()
    const asked = await generate(server.url, 'u1', 'pay')
    const [{ value }] = asked.metaEvents
    const response = JSON.stringify({ approved: true, remember: 'chat' })
    const metaEvents = [{ name: 'LangGraphInterruptEvent', value, response }]
    const at = { id: 'u1', createdAt: new Date(0).toISOString() }
    const messages = [{ ...at, textMessage: { content: 'pay', role: 'user' } }]
    await generate(server.url, 'u1', 'pay', { metaEvents, messages })
    expect(await grantsOf(server)).toMatchObject([{ tool: 'send' }])
    expect(await asks(server)).toBe(false)
  })
})

test('the journal says why a call began: the rule, and the grant', async () => {
  const server = await paying({
    policy: [{ name: 'tiny sums', arguments: { amount: { under: 2 } }, decision: 'allow' }],
  })
  await approved(server, { remember: 'chat' })
  await (await server.start('c', 'pay 1')).rest()
  await (await server.start('c', 'pay 7')).rest()
  const intents = (await server.journal('c')).flatMap((entry) =>
    entry.kind === 'effect.intended' && entry.body.effect === 'tool' ? [entry.body] : [],
  )
  expect(
    intents.map(({ rule, grantId, askId }) => [rule, Boolean(grantId), Boolean(askId)]),
  ).toEqual([
    [undefined, false, true],
    ['tiny sums', false, false],
    ['everything else is asked about', true, false],
  ])
})
