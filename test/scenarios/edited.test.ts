import { setImmediate } from 'node:timers/promises'
import { expect, test, vi } from 'vitest'
import { z } from 'zod'
import { workflow } from '../../src/agents/workflow/agent.ts'
import { readConfig } from '../../src/config.ts'
import type { Agent } from '../../src/core/agent.ts'
import { refOf, threadKeys } from '../../src/core/audit.ts'
import { exportLines, verifyExport } from '../../src/core/audit-export.ts'
import { defineTool } from '../../src/core/tool.ts'
import { sha256 } from '../../src/lib/canonical.ts'
import { compileSchema } from '../../src/lib/json-schema.ts'
import { mac } from '../../src/lib/mac.ts'
import { text } from '../../src/models/scripted.ts'
import { auditIfAny } from '../../src/open-audit.ts'
import { endpoint, webhookSecret } from '../support/endpoint.ts'
import { generate } from '../support/graphql.ts'
import { office } from '../support/office.ts'
import { type Served, serve } from '../support/serve.ts'
import { asked, send, story } from '../support/story.ts'
import { find, said } from '../support/tools.ts'

const original = { to: 'ann', amount: 5 }
const edited = { to: 'bob', amount: 2 }

/** An approval whose arguments the approver changed, and the rest of the interaction's stream. */
async function approvedWithEdit(input: object = edited) {
  const server = await story([[text('I pay.'), send('1')], [text('Done.')], [text('More.')]])
  const { stream, interaction_id, approval_id } = await asked(server)
  const body = { approval_id, approved: true, edited_input: input }
  const response = await server.approve('c', interaction_id, body)
  const frames = await stream.rest()
  return { server, interaction_id, approval_id, response, frames }
}

// biome-ignore lint/suspicious/noExplicitAny: the wire's JSON, looked into by assertions
const read = async (server: { url: string }, path: string): Promise<any> =>
  await (await fetch(server.url + path)).json()

test('GET /approvals/{id} of an edited approval shows the arguments that ran, and the original', async () => {
  const { server, approval_id } = await approvedWithEdit()
  expect(server.sent).toEqual([edited])
  const approval = await read(server, `/approvals/${approval_id}`)
  expect(approval).toMatchObject({
    ...{ title: 'Send 2 to “bob”', input: edited, edited: true, original_input: original },
    card: { title: 'Send 2 to “bob”', arguments: ['amount: 2', 'to: "bob"'] },
    original_card: { title: 'Send 5 to “ann”', arguments: ['amount: 5', 'to: "ann"'] },
    decision: { state: 'approved', edited: true },
  })
  const digests = [approval.card.digest, approval.original_card.digest]
  expect(new Set(digests).size).toBe(2)
  const { approvals } = await read(server, '/approvals?state=settled')
  expect(approvals).toMatchObject([{ id: approval_id, title: 'Send 2 to “bob”', edited: true }])
})

test('the stream of approvals marks a request that was approved with other arguments', async () => {
  const all = await office()
  const { ask, stream } = await all.waiting()
  const inbox = await all.as('carl').open('GET', '/approvals/stream')
  await inbox.until('snapshot')
  await all.decide('carl', ask, { approved: true, edited_input: edited })
  expect(find(await inbox.until('settled'), 'settled')).toMatchObject({
    ...{ id: ask, state: 'approved', title: 'Send 2 to “bob”', edited: true },
  })
  inbox.leave()
  await stream.rest()
})

test('an approval sent back with unchanged arguments is not marked as edited', async () => {
  const { server, approval_id, frames } = await approvedWithEdit(original)
  const approval = await read(server, `/approvals/${approval_id}`)
  expect(approval).toMatchObject({ title: 'Send 5 to “ann”', input: original })
  expect(approval).not.toHaveProperty('edited')
  const { approvals } = await read(server, '/approvals?state=settled')
  expect(approvals[0]).not.toHaveProperty('edited')
  expect(find(frames, 'tool_call')).not.toHaveProperty('edited')
})

test('an approval sent back with its arguments in another order is not marked as edited', async () => {
  const { amount, to } = original
  const { server, approval_id } = await approvedWithEdit({ amount, to })
  const approval = await read(server, `/approvals/${approval_id}`)
  expect(approval).not.toHaveProperty('edited')
  expect(server.sent).toEqual([original])
})

/** Arguments of the calls in a GraphQL response, and the calls of its last agent state if that has messages. */
const callsIn = ({ messages }: { messages: { arguments?: string[]; state?: string }[] }) => ({
  calls: messages.flatMap((one) => (one.arguments ? [JSON.parse(one.arguments.join(''))] : [])),
  loaded: (
    JSON.parse(messages.findLast(({ state }) => state)?.state ?? '{}').messages ?? []
  ).flatMap((one: { arguments?: object }) => one.arguments ?? []),
})

test.each([
  ['without a session', {}],
  ['with an agent session', { agentSession: { agentName: 'assistant', threadId: 'c' } }],
])('a GraphQL client %s that joins a finished run gets the arguments that ran', async (_, more) => {
  const { server } = await approvedWithEdit()
  const joined = await generate(server.url, '', '', { ...more, messages: [] })
  expect(callsIn(joined).calls).toEqual([edited])
})

test('a GraphQL client that joins a finished run with an unedited call gets the arguments as the model wrote them', async () => {
  const { server } = await approvedWithEdit(original)
  const joined = await generate(server.url, '', '', { messages: [] })
  expect(callsIn(joined).calls).toEqual([original])
})

test('a GraphQL client that has the original arguments of an edited call gets those that ran', async () => {
  const { server } = await approvedWithEdit()
  const call = {
    ...{ id: '1', createdAt: new Date(0).toISOString() },
    actionExecutionMessage: { name: 'send', arguments: JSON.stringify(original) },
  }
  const joined = await generate(server.url, '', '', { messages: [call] })
  expect(callsIn(joined)).toEqual({ calls: [], loaded: [edited] })
})

test('the chats wire marks an edited call in its frames and in the interaction', async () => {
  const { server, interaction_id, response, frames } = await approvedWithEdit()
  expect(await response.json()).toMatchObject({ approved: true, edited: true })
  expect(find(frames, 'approved')).toMatchObject({
    ...{ edited: true, edited_input: edited, original_input: original },
  })
  const call = {
    ...{ id: '1', tool_name: 'send', tool_input: JSON.stringify(edited), edited: true },
    original_tool_input: JSON.stringify(original),
  }
  expect(find(frames, 'tool_call')).toMatchObject(call)
  expect(find(frames, 'tool_result')).toMatchObject({ tool_output: 'sent 2 to bob' })
  const { agent_events } = await read(server, `/chats/c/interactions/${interaction_id}`)
  expect(agent_events).toContainEqual({ type: 'TOOL_CALL', ...call })
  expect(agent_events.filter(({ type }: { type: string }) => type === 'TOOL_RESULT')).toHaveLength(
    1,
  )
})

test('the model is told which arguments ran in place of its own', async () => {
  const { server, interaction_id } = await approvedWithEdit()
  const [, request] = server.model.requests
  const told = said(request)
  expect(told.filter((line) => line.startsWith('tool: '))).toEqual([
    'tool: The approver changed the arguments of this call. It ran with these arguments: ' +
      '{"to":"bob","amount":2}\n\nsent 2 to bob',
  ])
  const { final_agent_state } = await read(server, `/chats/c/interactions/${interaction_id}`)
  const results = final_agent_state.messages.filter(({ role }: { role: string }) => role === 'tool')
  expect(results).toMatchObject([{ tool_call_id: '1', content: told.at(-1)!.slice(6) }])
  await (await server.start('c', 'and now?')).rest()
  expect(said(server.model.requests[2])).toContain(told.at(-1))
})

test('an edited call that fails tells the model its arguments too', async () => {
  const server = await story([[send('1')], [text('Done.')]])
  server.send.run = () => Promise.reject(new Error('no money'))
  const { stream, interaction_id, approval_id } = await asked(server)
  await server.approve('c', interaction_id, { approval_id, approved: true, edited_input: edited })
  await stream.rest()
  expect(said(server.model.requests[1]).at(-1)).toMatch(
    /^tool: The approver changed.*\{"to":"bob","amount":2\}\n\nError executing tool: no money$/s,
  )
})

test('the workflow wire marks an edited call and its approval', async () => {
  const server = await story([[send('1')], [text('Done.')]])
  const body = { session_id: 's', messages: [{ role: 'user', content: 'pay ann' }] }
  const stream = await server.open('POST', '/copilotkit/chat', body)
  const { approval_id } = find(await stream.until('approval_required'), 'approval_required').data
  const decision = { approved: true, edited_input: edited }
  await server.request('POST', `/approvals/${approval_id}`, decision)
  const frames = await stream.rest()
  expect(find(frames, 'approval_response').data).toMatchObject({
    ...{ status: 'approved', edited: true, input: edited, original_input: original },
  })
  expect(find(frames, 'tool_call').data).toMatchObject({
    ...{ tool_args: edited, edited: true, original_args: original },
  })
  const session = await read(server, '/copilotkit/status?session_id=s')
  expect(session.approval_requests).toMatchObject([{ title: 'Send 2 to “bob”', edited: true }])
})

const draft = { action: 'call', priority: 1 }
const other = { action: 'write', priority: 2 }

/** A workflow whose first recommendation a person approves with these changes. */
async function approvedDraft(changes: object) {
  const author: Agent = {
    name: 'author',
    async *run(ctx) {
      const message = { id: ctx.newId('msg'), role: 'assistant' as const, parts: [] }
      yield { type: 'message', message: { ...message, meta: { output: [draft, other] } } }
    },
  }
  const steps = [
    { agent: author, outputKey: 'drafts' },
    { approve: 'drafts', schema: {} },
  ]
  const agents = [workflow({ name: 'flow', steps })]
  const server = await serve({ agents })
  const body = { session_id: 'c', messages: [{ role: 'user', content: 'go' }] }
  const session = await server.open('POST', '/copilotkit/chat', body)
  const required = find(await session.until('approval_required'), 'approval_required')
  const { approval_id } = required.data
  const edited_input = { recommendation: changes }
  const approval = { approved: true, edited_input }
  const answer = await server.request('POST', `/approvals/${approval_id}`, approval)
  expect(answer.status).toBe(200)
  const frames = await session.rest()
  return { server, approval_id, response: find(frames, 'approval_response').data, frames }
}

test('every wire shows the whole recommendation that the next steps of a workflow get after an edit', async () => {
  const { server, approval_id, response, frames } = await approvedDraft({ action: 'visit' })
  const changed = { action: 'visit', priority: 1 }
  const input = { recommendation: changed, recommendations: [changed, other] }
  const original = { recommendation: draft, recommendations: [draft, other] }
  const { results } = find(frames, 'workflow_completed').data.final_output
  expect(results.drafts).toEqual(input.recommendations)
  const approval = await read(server, `/approvals/${approval_id}`)
  expect(approval).toMatchObject({ edited: true, input, original_input: original })
  expect(approval.card.arguments).toContain(`recommendation: ${JSON.stringify(changed)}`)
  expect(response).toMatchObject({ edited: true, input, original_input: original })
  const { decided } = await read(server, '/copilotkit/threads/c/outline')
  expect(decided).toMatchObject([{ edited: true, input, originalInput: original }])
  const { approvals } = await read(server, '/approvals?state=settled')
  expect(approvals).toMatchObject([{ id: approval_id, edited: true }])
  const run = find(frames, 'approval_response').run_id
  const replay = await (await server.join('c', run)).rest()
  expect(find(replay, 'approved')).toMatchObject({ edited_input: input, original_input: original })
  const decisions = decisionsIn((await exportOf(server)).lines)
  expect(decisions).toContainEqual(expect.objectContaining({ edited_input: input }))
})

test('a recommendation that is sent back unchanged is not marked as edited', async () => {
  const { server, approval_id, response, frames } = await approvedDraft(draft)
  const approval = await read(server, `/approvals/${approval_id}`)
  expect(approval).not.toHaveProperty('edited')
  expect(response).not.toHaveProperty('edited')
  const { approvals } = await read(server, '/approvals?state=settled')
  expect(approvals[0]).not.toHaveProperty('edited')
  const { approval: result } = find(frames, 'workflow_completed').data.final_output
  expect(result).not.toHaveProperty('edited')
})

test('the webhook of an edited approval has the title of what ran, and says that it was edited', async () => {
  const hook = await endpoint()
  const env = {
    ...{ HANDRAIL_WEBHOOK_URL: hook.url, HANDRAIL_WEBHOOK_SECRET: webhookSecret },
    ...{ HANDRAIL_WEBHOOK_EVENTS: 'all', HANDRAIL_PUBLIC_URL: 'https://handrail.example/' },
  }
  const { waiting, decide } = await office({}, { env })
  const { ask, stream } = await waiting()
  await hook.come(1)
  await decide('carl', ask, { approved: true, edited_input: edited })
  await stream.rest()
  const [, settled] = await hook.come(2)
  expect(settled!.json).toMatchObject({
    type: 'approval.settled',
    data: { id: ask, state: 'approved', title: 'Send 2 to “bob”', edited: true },
  })
})

/** The audit export of the chat `c`. */
async function exportOf({ data, server }: Pick<Served, 'data' | 'server'>) {
  const keys = (await auditIfAny(readConfig({ HANDRAIL_DATA: data })))!
  const at = { tenant: 'default', owner: 'local', clientId: 'c' }
  const threadId = (await server.store.locate(at))!
  const entries = async function* () {
    yield* await server.store.kept(threadId)
  }
  const lines: string[] = []
  for await (const line of exportLines(keys, threadId, entries(), 1)) lines.push(line)
  return { keys, threadId, lines }
}

const decisionsIn = (lines: readonly string[]) =>
  lines.flatMap((line) => {
    const { decision } = JSON.parse(line) as { decision?: { kind: string } }
    return decision ? [decision] : []
  })

test('the audit export reads out the original and the edited arguments, and verifies', async () => {
  const { server } = await approvedWithEdit()
  const { keys, threadId, lines } = await exportOf(server)
  const decisions = decisionsIn(lines)
  const of = (kind: string) => decisions.find((one) => one.kind === kind)
  expect(of('ask.raised')).toMatchObject({ input: original })
  expect(of('ask.answered')).toMatchObject({ state: 'approved', edited_input: edited })
  const began = decisions.find((one) => one.kind === 'effect.intended' && 'askId' in one)
  expect(began).toMatchObject({ name: 'send', title: 'Send 2 to “bob”', input: edited })
  const all = async function* (list: readonly string[]) {
    yield* list
  }
  expect(await verifyExport(keys, all(lines))).toMatchObject({ ok: true })
  // A file that was exported before the arguments were read out still verifies.
  const older = lines.slice(0, -1).map((line) => {
    const { v, decision, ...rest } = JSON.parse(line)
    if (v !== undefined) return JSON.stringify({ v: 1, ...rest })
    if (decision === undefined) return line
    const { input: _, edited_input: __, ...before } = decision
    const title = 'askId' in before && { title: 'Send 5 to “ann”' }
    return JSON.stringify({ decision: { ...before, ...title }, ...rest })
  })
  const sum = older.reduce((sofar, line) => sha256(`${sofar}\n${line}`), '')
  const key = threadKeys(keys, refOf(threadId))(keys[0].keyId)!
  const proof = JSON.stringify({ mac: mac(key, `export\n${sum}`) })
  expect(await verifyExport(keys, all([...older, proof]))).toMatchObject({ ok: true })
  const forged = lines.map((line) => line.replace('"input":{"to":"bob"', '"input":{"to":"eve"'))
  expect(await verifyExport(keys, all(forged))).toMatchObject({ ok: false })
})

test('the server handles other work between the steps that read edited arguments', async () => {
  let turns = 0
  const turnOf: Record<string, number> = {}
  const pay = defineTool({
    name: 'send',
    description: 'Sends money.',
    schema: z.looseObject({}).refine(() => {
      turnOf.checked = turns
      return true
    }),
    access: 'write',
    describe() {
      turnOf.shown = turns
      return 'Pay'
    },
    run: async () => 'paid',
  })
  const judged = () => {
    turnOf.judged = turns
    return true
  }
  const policy = [{ name: 'pay', tool: 'send', when: judged, decision: 'ask' }] as const
  const server = await story([[send('1')], [text('Done.')]], { tools: [pay], policy })
  const { stream, interaction_id, approval_id } = await asked(server)
  let isCounting = true
  const counting = (async () => {
    for (; isCounting; turns++) await setImmediate()
  })()
  const body = { approval_id, approved: true, edited_input: edited }
  const response = server.approve('c', interaction_id, body)
  // The card is shown once more when the tool runs: read the turns of the edit before that.
  const first = new Promise<typeof turnOf>((resolve) => {
    const before = { ...turnOf }
    const look = async () => {
      while (turnOf.shown === before.shown) await setImmediate()
      resolve({ ...turnOf })
    }
    void look()
  })
  const { checked, judged: rated, shown } = await first
  isCounting = false
  await Promise.all([response, counting, stream.rest()])
  expect(rated).toBeGreaterThan(checked!)
  expect(shown).toBeGreaterThan(rated!)
})

test('AG-UI connect serializes each of four long edits once in each message, with other work between them', async () => {
  const pay = defineTool({
    ...{ name: 'send', description: 'Sends money.', access: 'write', schema: z.looseObject({}) },
    run: async () => 'paid',
  })
  const steps = [0, 1, 2, 3].map((i) => [send(`${i}`)])
  const server = await story([...steps, [text('Done.')]], { tools: [pay] })
  let { stream, interaction_id, approval_id } = await asked(server)
  const note = '\n'.repeat(300_000)
  for (const i of [0, 1, 2, 3]) {
    await server.approve('c', interaction_id, {
      ...{ approval_id, approved: true, edited_input: { i, note } },
    })
    if (i < 3)
      approval_id = find(await stream.until('approval_required'), 'approval_required').approval_id
  }
  await stream.rest()
  for (const tools of [[], [{ name: 'approveAction', description: '', parameters: {} }]]) {
    let turns = 0
    const turnsOf: number[][] = [[], [], [], []]
    const { stringify } = JSON
    const spy = vi.spyOn(JSON, 'stringify').mockImplementation(((
      ...args: Parameters<typeof stringify>
    ) => {
      const { state, input = args[0] } = Object(args[0])
      if (Object(input).note === note && (state || input === args[0])) turnsOf[input.i]!.push(turns)
      return stringify(...args)
    }) as typeof stringify)
    let isCounting = true
    const counting = (async () => {
      for (; isCounting; turns++) await setImmediate()
    })()
    const body = { threadId: 'c', runId: 'r', messages: [], tools, context: [], state: {} }
    const response = await server.request('POST', '/copilotkit/agent/default/connect', body)
    const told = await response.text()
    isCounting = false
    spy.mockRestore()
    await counting
    expect(told.split('MESSAGES_SNAPSHOT')).toHaveLength(2)
    expect(told.length).toBeGreaterThan(4 * 300_000)
    expect(turnsOf.map(({ length }) => length)).toEqual(Array(4).fill(1 + tools.length))
    expect(new Set(turnsOf.flat()).size).toBeGreaterThanOrEqual(3)
  }
})

/** Sends edited arguments for a tool with a JSON Schema. Counts the steps of each check. */
async function editOf(json: object) {
  const check = compileSchema(json, { unsupportedPatterns: 'refuse' })
  const steps: number[] = []
  const issues = (value: unknown) => {
    const budget = { steps: 250_000 }
    const found = check(value, budget)
    steps.push(250_000 - budget.steps)
    return found
  }
  const pay = defineTool({
    ...{ name: 'send', description: 'Sends money.', access: 'write', schema: { json, issues } },
    run: async () => 'paid',
  })
  const server = await story([[send('1')], [text('Done.')]], { tools: [pay] })
  const { stream, interaction_id, approval_id } = await asked(server)
  const edit = async (edited_input: object) => {
    const body = { approval_id, approved: true, edited_input }
    const response = await server.approve('c', interaction_id, body)
    return { status: response.status, text: await response.text() }
  }
  return { edit, steps, stream }
}

test('edited arguments with 12,000 rows that do not fit a $ref are refused after the first rows', async () => {
  const row = { type: 'object', required: ['a', 'b', 'c', 'd', 'e'] }
  const properties = { rows: { items: { $ref: '#/$defs/row' } } }
  const { edit, steps, stream } = await editOf({ properties, $defs: { row } })
  const refused = await edit({ rows: Array.from({ length: 12_000 }, () => ({})) })
  expect(refused).toMatchObject({ status: 400 })
  expect(refused.text).toContain('edited_input.rows.0.a')
  expect(steps.at(-1)).toBeGreaterThan(12_000) // items takes a step for each row
  expect(steps.at(-1)).toBeLessThan(14_000)
  expect(await edit({ rows: [] })).toMatchObject({ status: 200 })
  await stream.rest()
})

test('edited arguments that take too long to check against a JSON Schema are refused', async () => {
  const names = { allOf: Array.from({ length: 160 }, () => ({ uniqueItems: true })) }
  const { edit, stream } = await editOf({ properties: { names } })
  const long = Array.from({ length: 900 }, (_, n) => `${n}${'x'.repeat(1_000)}`)
  const refused = await edit({ names: long })
  expect(refused).toMatchObject({ status: 400 })
  expect(refused.text).toContain('takes too long to check against its schema')
  expect(await edit({ names: ['a', 'b'] })).toMatchObject({ status: 200 })
  await stream.rest()
})
