import { expect, test } from 'vitest'
import { z } from 'zod'
import type { PolicyRule } from '../../src/core/policy.ts'
import { defineTool, type Tool } from '../../src/core/tool.ts'
import { call, scriptedModel, text } from '../../src/models/scripted.ts'
import type { Frame } from '../support/chats.ts'
import { gate } from '../support/gate.ts'
import { type Served, serve } from '../support/serve.ts'
import { temporaryDirectory } from '../support/server.ts'
import { find, names } from '../support/tools.ts'
import { warpClock } from '../support/warp-clock.ts'

const allow: PolicyRule[] = [{ decision: 'allow' }]
const ask: PolicyRule[] = [{ name: 'money', tool: 'send', decision: 'ask' }]
const deny: PolicyRule[] = [{ name: 'freeze', tool: 'send', decision: 'deny', reason: 'frozen' }]

interface Restart {
  idempotent?: boolean
  before: PolicyRule[]
  after: PolicyRule[]
  /** How the first server is made to run the call; by default the policy allows it. */
  permit?: (server: Served) => Promise<unknown>
  /** Happens while the call runs on the first server. */
  during?: (server: Served) => Promise<unknown>
  /** The tools of the second server; by default those of the first. */
  toolsAfter?: (send: Tool) => Tool[]
}

/** Stops a server in the middle of a call of `send`, and starts another one with another policy. */
async function restarted({
  idempotent = false,
  before,
  after,
  permit,
  during,
  toolsAfter = (send) => [send],
}: Restart) {
  const { path: data } = await temporaryDirectory()
  const inside = gate()
  let hangs = false
  let runs = 0
  const send = defineTool({
    name: 'send',
    description: 'Sends money',
    schema: z.strictObject({}),
    idempotent,
    async run(_, { signal }) {
      runs++
      if (hangs) await inside.pass(signal)
      return 'sent'
    },
  })
  const settings = (policy: PolicyRule[], tools = [send]) => ({
    model: scriptedModel((request) => {
      const last = request.messages.at(-1)!
      return last.role === 'user' ? [call(last.id, 'send', {})] : [text('ok')]
    }),
    ...{ tools, builtIns: false, policy },
  })
  const first = await serve(settings(before), { data })
  await permit?.(first)
  hangs = true
  runs = 0
  const stream = await first.start('c', 'send it')
  const interaction = stream.response.headers.get('x-interaction-id')!
  if (before === ask && !permit) {
    const { approval_id } = find(await stream.until('approval_required'), 'approval_required')
    await first.approve('c', interaction, { approval_id, approved: true })
  }
  await inside.reached
  await during?.(first)
  stream.leave()
  await first.close()
  hangs = false
  const clock = warpClock()
  clock.advance(3_600_000) // whatever the first server had begun is over
  const second = await serve(settings(after, toolsAfter(send)), { data, clock })
  const joined = await second.join('c', interaction)
  const decide = async (frames: Frame[], decision: object) => {
    const { approval_id } = find(frames, 'approval_required')
    await second.approve('c', interaction, { approval_id, ...decision })
  }
  const lastIntent = async () =>
    (await second.journal('c')).findLast(
      ({ kind, body }) => kind === 'effect.intended' && (body as { name?: string }).name === 'send',
    )?.body as { attempt: number; grantId?: string; askId?: string; rule?: string }
  return { second, joined, decide, lastIntent, runs: () => runs }
}

/** Approves a first call for the rest of the chat, so that the next call runs under a grant. */
async function remembered(server: Served): Promise<void> {
  const stream = await server.start('c', 'send first')
  const { approval_id } = find(await stream.until('approval_required'), 'approval_required')
  const interaction = stream.response.headers.get('x-interaction-id')!
  await server.approve('c', interaction, { approval_id, approved: true, remember: 'chat' })
  await stream.rest()
}

async function revokeAll(server: Served): Promise<void> {
  const { grants } = await (await server.request('GET', '/threads/c/grants')).json()
  expect(grants).toHaveLength(1)
  for (const { id } of grants) {
    const response = await server.request('DELETE', `/threads/c/grants/${id}`)
    expect(response.status).toBeLessThan(300)
  }
}

test.each([
  ['the policy allowed', allow],
  ['a person approved', ask],
])(
  'a call that %s is not run again after a restart when a new rule denies it',
  async (_, before) => {
    const { joined, runs } = await restarted({ idempotent: true, before, after: deny })
    const frames = await joined.rest()
    expect(find(frames, 'denied')).toMatchObject({ rule: 'freeze' })
    expect(find(frames, 'tool_result').tool_output).toMatch(/^This call is not allowed: frozen/)
    expect(find(frames, 'interaction_complete').status).toBe('COMPLETED')
    expect(runs()).toBe(1)
  },
)

test('an approval of a call stays valid after a restart', async () => {
  const { joined, runs, lastIntent } = await restarted({
    ...{ idempotent: true, before: ask, after: ask },
  })
  const frames = await joined.rest()
  expect(names(frames).filter((name) => name === 'approval_required')).toHaveLength(1)
  expect(find(frames, 'tool_result').tool_output).toBe('sent')
  expect(await lastIntent()).toMatchObject({ attempt: 2, askId: expect.any(String) })
  expect(runs()).toBe(2)
})

test('a call under a grant that was revoked is asked about after a restart', async () => {
  const { joined, runs, decide, lastIntent } = await restarted({
    ...{ idempotent: true, before: ask, after: ask, permit: remembered, during: revokeAll },
  })
  const asked = await joined.until('approval_required')
  expect(find(asked, 'approval_required')).toMatchObject({ kind: 'approval', tool_name: 'send' })
  expect(runs()).toBe(1)
  await decide(asked, { approved: true })
  expect(find(await joined.rest(), 'tool_result').tool_output).toBe('sent')
  const intent = await lastIntent()
  expect(intent).toMatchObject({ attempt: 2, askId: expect.any(String) })
  expect(intent.grantId).toBeUndefined()
  expect(runs()).toBe(2)
})

test('a call that restarts under a grant records the grant', async () => {
  const { joined, runs, lastIntent } = await restarted({
    ...{ idempotent: true, before: ask, after: ask, permit: remembered },
  })
  expect(find(await joined.rest(), 'tool_result').tool_output).toBe('sent')
  expect(await lastIntent()).toMatchObject({ attempt: 2, grantId: expect.any(String) })
  expect(runs()).toBe(2)
})

test('a call in doubt that did not happen is not run when a new rule denies it', async () => {
  const { joined, runs, decide } = await restarted({ before: allow, after: deny })
  const asked = await joined.until('approval_required')
  expect(find(asked, 'approval_required')).toMatchObject({ kind: 'in_doubt' })
  await decide(asked, { outcome: 'did_not' })
  expect(find(await joined.rest(), 'tool_result').tool_output).toMatch(/^This call is not allowed/)
  expect(runs()).toBe(1)
})

test('a call in doubt that did not happen needs an approval when a new rule asks for one', async () => {
  const { joined, runs, decide, lastIntent } = await restarted({ before: allow, after: ask })
  const doubt = await joined.until('approval_required')
  await decide(doubt, { outcome: 'did_not' })
  const asked = await joined.until('approval_required')
  expect(find(asked, 'approval_required')).toMatchObject({ kind: 'approval' })
  expect(runs()).toBe(1)
  await decide(asked, { approved: true })
  expect(find(await joined.rest(), 'tool_result').tool_output).toBe('sent')
  expect(await lastIntent()).toMatchObject({ attempt: 2, askId: expect.any(String) })
  expect(runs()).toBe(2)
})

test.each<[string, (send: Tool) => Tool[]]>([
  [
    'its input does not fit the new schema of its tool',
    (send) => [{ ...send, schema: z.strictObject({ currency: z.string() }) }],
  ],
  ['its tool is gone', () => []],
])('an interrupted call is in doubt after a restart when %s', async (_, toolsAfter) => {
  const { joined, runs, decide } = await restarted({ before: allow, after: allow, toolsAfter })
  const asked = await joined.until('approval_required')
  expect(find(asked, 'approval_required')).toMatchObject({ kind: 'in_doubt', tool_name: 'send' })
  await decide(asked, { outcome: 'happened', result: 'sent by the first server' })
  const frames = await joined.rest()
  expect(find(frames, 'tool_result').tool_output).toBe('sent by the first server')
  expect(find(frames, 'interaction_complete').status).toBe('COMPLETED')
  expect(runs()).toBe(1)
})
