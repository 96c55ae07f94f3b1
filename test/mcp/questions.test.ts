import { describe, expect, test } from 'vitest'
import { agui } from '../support/agui.ts'
import { chatsClient } from '../support/chats.ts'
import { generate } from '../support/graphql.ts'
import { allow, mcpOverHttp, mcpStage, withMcp } from '../support/mcp.ts'
import { startServer, temporaryDirectory } from '../support/server.ts'
import { find } from '../support/tools.ts'

const result = (frames: Parameters<typeof find>[0]) => find(frames, 'tool_result').tool_output
const ask = (said: string): [string, unknown] =>
  said === 'pay' ? ['till__pay', { to: 'ann', amount: 1 }] : ['till__ask', { question: said }]
const accepted = '{"action":"accept","content":{"colour":"red"}}'

async function asked(options: { askTimeout?: number } = {}) {
  const stage = await mcpStage()
  const till = { ...stage.stdio, timeout: 4_000, ...options }
  const server = await withMcp({ till }, ask, { policy: allow })
  return { stage, server }
}

describe('a server asks the user in the middle of a call', () => {
  test('answered from the chats wire, in its own time, and as its schema says', async () => {
    const { stage, server } = await asked()
    const stream = await server.start('c', 'Which colour?')
    const question = find(await stream.until('approval_required'), 'approval_required')
    expect(question).toMatchObject({ kind: 'input', tool_name: 'till__ask' })
    expect(question.card).toMatchObject({ title: 'Which colour?', schema: { type: 'object' } })
    const interaction = stream.response.headers.get('x-interaction-id')!
    const { approval_id } = question
    const answer = (colour: string) =>
      server.approve('c', interaction, { approval_id, answer: { colour } })
    expect((await answer('green')).status).toBe(400)
    await new Promise((resolve) => setTimeout(resolve, 5_000)) // longer than the call may take
    expect((await answer('red')).status).toBe(200)
    expect(result(await stream.rest())).toBe(accepted)
    expect(stage.done()).toEqual(['accept'])
    expect((await answer('blue')).status).toBe(400) // decided (I2)
  })

  test('declined, or not answered in time', async () => {
    const { server } = await asked({ askTimeout: 1_500 })
    const stream = await server.start('c', 'Which colour?')
    const question = find(await stream.until('approval_required'), 'approval_required')
    const interaction = stream.response.headers.get('x-interaction-id')!
    const { approval_id } = question
    await server.approve('c', interaction, { approval_id, approved: false })
    expect(result(await stream.rest())).toBe('{"action":"decline"}')
    expect(result(await (await server.start('c', 'Now?')).rest())).toBe('{"action":"cancel"}')
  })

  test('answered from AG-UI: an interrupt, and the same call goes on', async () => {
    const { stage, server } = await asked()
    const messages = [{ id: 'm1', role: 'user', content: 'Which colour?' }]
    const events = await agui(server.url, { messages })
    const { outcome } = events.at(-1)
    expect(outcome).toMatchObject({ type: 'interrupt' })
    const [interrupt] = outcome.interrupts
    expect(interrupt).toMatchObject({ reason: 'input_required', message: 'Which colour?' })
    expect(interrupt.responseSchema).toMatchObject({ required: ['colour'] })
    // Whoever comes meanwhile is asked, too.
    const joined = await agui(server.url, { runId: 'r1', messages })
    expect(joined.at(-1).outcome.interrupts[0].id).toBe(interrupt.id)
    const resume = [{ interruptId: interrupt.id, status: 'resolved', payload: { colour: 'red' } }]
    const more = await agui(server.url, { runId: 'r2', messages, resume })
    const told = more.find(({ type }) => type === 'TOOL_CALL_RESULT')
    expect(told.content).toBe(accepted)
    expect(more.at(-1)).toMatchObject({ type: 'RUN_FINISHED', runId: 'r2' })
    expect(stage.done()).toEqual(['accept'])
  })

  test('answered from GraphQL', async () => {
    const { server } = await asked()
    const send = (metaEvents: object[]) =>
      generate(server.url, 'm1', 'Which colour?', { metaEvents })
    const first = await send([])
    const [{ name, value }] = first.metaEvents
    expect(JSON.parse(value)).toMatchObject({ kind: 'input', title: 'Which colour?' })
    const second = await send([{ name, value, response: '{"colour":"red"}' }])
    expect(second.messages).toContainEqual({ result: accepted })
  })

  test('cancelled with its run', async () => {
    const { stage, server } = await asked()
    const stream = await server.start('c', 'Which colour?')
    await stream.until('approval_required')
    await server.cancel('c', stream.response.headers.get('x-interaction-id')!)
    await stream.rest()
    const states = (await server.journal('c')).filter(({ kind }) => kind === 'ask.answered')
    expect(states.map(({ body }) => (body as { state: string }).state)).toEqual(['cancelled'])
    await expect.poll(() => stage.done(), { timeout: 5_000 }).toEqual(['cancel'])
  })
})

test('the server is killed while it waits: its question is withdrawn, and a person says whether it happened', async () => {
  const stage = await mcpStage()
  const till = await mcpOverHttp(stage)
  const server = await withMcp({ till: { url: till.url, timeout: 2_000 } }, ask, { policy: allow })
  const stream = await server.start('c', 'Which colour?')
  const question = find(await stream.until('approval_required'), 'approval_required')
  await till.kill()
  const doubt = find(await stream.until('approval_required'), 'approval_required')
  expect(doubt).toMatchObject({ kind: 'in_doubt', tool_name: 'till__ask' })
  const { asks } = (await server.server.runtime.thread('c')).state
  expect(asks.get(question.approval_id)?.answer?.state).toBe('cancelled')
  const interaction = stream.response.headers.get('x-interaction-id')!
  const skip = { approval_id: doubt.approval_id, outcome: 'skip' }
  await server.approve('c', interaction, skip)
  expect(result(await stream.rest())).toMatch(/it was skipped/)
})

test('our own crash while it waits: the call is in doubt, and its question is withdrawn (I4)', async () => {
  const stage = await mcpStage()
  const till = await mcpOverHttp(stage)
  const directory = await temporaryDirectory()
  const env = {
    HANDRAIL_DATA: directory.path,
    HANDRAIL_SPOOL: `${directory.path}/spool`,
    HANDRAIL_CONFIG: new URL('./handrail.config.mjs', import.meta.url).pathname,
    HANDRAIL_LEASE_MS: '1000',
    TEST_MCP_URL: till.url,
  }
  const first = await startServer(env)
  const stream = await chatsClient(first.url).start('c', 'ask')
  const question = find(await stream.until('approval_required'), 'approval_required')
  expect(question.kind).toBe('input')
  const interaction = stream.response.headers.get('x-interaction-id')!
  await first.kill()
  const second = await startServer(env)
  const client = chatsClient(second.url)
  const joined = await client.join('c', interaction)
  await joined.until('approval_required')
  const doubt = find(await joined.until('approval_required'), 'approval_required')
  expect(doubt).toMatchObject({ kind: 'in_doubt', tool_name: 'till__ask' })
  const late = { approval_id: question.approval_id, answer: { colour: 'red' } }
  expect((await client.approve('c', interaction, late)).status).toBe(400)
  await client.approve('c', interaction, { approval_id: doubt.approval_id, outcome: 'skip' })
  expect(result(await joined.rest())).toMatch(/it was skipped/)
  expect(stage.done()).toEqual([])
  await second.stop()
  await directory.remove()
}, 60_000)
