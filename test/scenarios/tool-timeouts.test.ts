import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { textOf } from '../../src/core/messages.ts'
import { defineTool } from '../../src/core/tool.ts'
import { call, scriptedModel, text } from '../../src/models/scripted.ts'
import { agui } from '../support/agui.ts'
import { gate } from '../support/gate.ts'
import { serve } from '../support/serve.ts'
import { temporaryDirectory } from '../support/server.ts'
import { find, problem } from '../support/tools.ts'
import { warpClock } from '../support/warp-clock.ts'

/** A server whose tool `pay` exceeds its timeout of 10 s and returns when the test says so. */
async function slowBank(options: Parameters<typeof serve>[1] = {}) {
  const clock = warpClock()
  const bank = gate()
  let runs = 0
  const pay = defineTool({
    name: 'pay',
    description: 'Pays',
    schema: z.strictObject({}),
    timeout: 10_000,
    async run() {
      runs++
      await bank.pass()
      return 'Receipt 17'
    },
  })
  const model = scriptedModel((request) =>
    request.messages.some(({ role }) => role === 'tool') ? [text('ok')] : [call('1', 'pay', {})],
  )
  const policy = [{ decision: 'allow' as const }]
  const settings = { model, tools: [pay], policy, builtIns: false }
  const server = await serve(settings, { clock, ...options })
  const exceed = async () => {
    await bank.reached
    clock.advance(10_001)
    await new Promise((resolve) => setTimeout(resolve, 20))
    clock.advance(2_001)
  }
  return { server, settings, clock, bank, exceed, runs: () => runs }
}

test('over the chats API, a call that exceeds its timeout is in doubt until its late result settles it', async () => {
  const { server, bank, exceed, runs } = await slowBank()
  const stream = await server.start('c', 'pay')
  await exceed()
  const ask = find(await stream.until('approval_required'), 'approval_required')
  expect(ask).toMatchObject({ kind: 'in_doubt', tool_name: 'pay' })
  expect(ask.card.evidence.error).toBe(
    'The call did not finish within 10 s. It may still be running.',
  )
  await server.recorded('c', 'run.waiting')
  bank.open()
  const frames = await stream.rest()
  expect(find(frames, 'approved')).toMatchObject({
    approval_id: ask.approval_id,
    outcome: 'happened',
    by: 'late_result',
  })
  expect(find(frames, 'tool_result').tool_output).toBe('Receipt 17')
  expect(find(frames, 'interaction_complete').status).toBe('COMPLETED')
  expect(runs()).toBe(1)

  const interaction = stream.response.headers.get('x-interaction-id')!
  const decision = { approval_id: ask.approval_id, outcome: 'did_not' }
  const refused = await problem(await server.approve('c', interaction, decision))
  expect(refused).toMatchObject({ code: 'ask_settled' })
  const shown = await (await server.request('GET', `/approvals/${ask.approval_id}`)).json()
  expect(shown).toMatchObject({ state: 'answered', decision: { outcome: 'happened' } })
})

test('over AG-UI, a call that exceeds its timeout is an interrupt, and its late result completes the run', async () => {
  const { server, bank, exceed, runs } = await slowBank()
  const message = { id: 'm', role: 'user', content: 'pay' }
  const answered = agui(server.url, { messages: [message] })
  await exceed()
  const events = await answered
  const calls = events.filter(({ name }) => name === 'handrail:call')
  expect(calls.map(({ value }) => value.state)).toEqual(['running', 'unknown'])
  expect(JSON.stringify(events.at(-1))).toContain('handrail:in_doubt')
  bank.open()
  await server.recorded('c', 'run.completed')
  const { messages } = (await server.chat('c')).interactions[0].final_agent_state
  expect(messages.find(({ role }: { role: string }) => role === 'tool').content).toBe('Receipt 17')
  expect(runs()).toBe(1)
})

/** A server with a drain of 60 s that is closed while a call that exceeded its timeout still runs. */
async function closingBank() {
  const { path: data, remove } = await temporaryDirectory()
  onTestFinished(remove) // runs after the servers are closed, because these hooks run in reverse order
  const place = await slowBank({ data, env: { HANDRAIL_DRAIN_MS: '60000' } })
  const stream = await place.server.start('c', 'pay')
  await place.exceed()
  await stream.until('approval_required')
  await place.server.recorded('c', 'run.waiting')
  let closed = false
  const closing = place.server.close().then(() => {
    closed = true
  })
  await stream.rest()
  await sleep(1_500)
  const next = (settings: object = {}) => serve({ ...place.settings, ...settings }, { data })
  return { ...place, closing, isClosed: () => closed, next }
}

test('a server that stops waits for a call that exceeded its timeout, and records its late result', async () => {
  const { bank, closing, isClosed, next, runs } = await closingBank()
  expect(isClosed()).toBe(false)
  bank.open()
  await closing
  const server = await next()
  await server.recorded('c', 'run.completed')
  const entries = await server.journal('c')
  const answered = entries.find(({ kind }) => kind === 'ask.answered')
  expect(answered?.actor.id).toBe('late_result')
  const { messages } = (await server.chat('c')).interactions[0].final_agent_state
  expect(messages.find(({ role }: { role: string }) => role === 'tool').content).toBe('Receipt 17')
  expect(runs()).toBe(1)
})

test('a late result reaches the model after a restart with another schema of the tool', async () => {
  const { bank, closing, next, settings, runs } = await closingBank()
  bank.open()
  await closing
  const schema = z.strictObject({ note: z.string().optional() })
  const server = await next({ tools: settings.tools.map((tool) => ({ ...tool, schema })) })
  await server.recorded('c', 'run.completed')
  const { messages } = (await server.chat('c')).interactions[0].final_agent_state
  expect(messages.find(({ role }: { role: string }) => role === 'tool').content).toBe('Receipt 17')
  expect(runs()).toBe(1)
})

test('a server that stops does not wait longer than HANDRAIL_DRAIN_MS for a call that exceeded its timeout', async () => {
  const { clock, closing, isClosed } = await closingBank()
  expect(isClosed()).toBe(false)
  clock.advance(60_001)
  await closing
})

test('a payment that the bank books after its request was aborted is not made twice', async () => {
  const clock = warpClock()
  const sent = gate()
  let requests = 0
  let booked = 0
  let checks = 0
  const pay = defineTool({
    name: 'pay',
    description: 'Pays',
    schema: z.strictObject({}),
    timeout: 500,
    async run(_, { signal }) {
      requests++
      await sent.pass(signal) // the request is aborted, but the bank has it
      return 'paid'
    },
    async check() {
      if (checks++ > 0) booked = requests
      return booked > 0 ? { happened: true, output: 'paid' } : { happened: false }
    },
  })
  const model = scriptedModel((request) => {
    const last = request.messages.at(-1)!
    const again = last.role === 'user' || /did not happen/.test(textOf(last))
    return again ? [call(last.id, 'pay', {})] : [text('ok')]
  })
  const policy = [{ decision: 'allow' as const }]
  const server = await serve({ model, tools: [pay], policy, builtIns: false }, { clock })
  const stream = await server.start('c', 'pay')
  await sent.reached
  clock.advance(501)
  await server.recorded('c', 'effect.unknown')
  await expect.poll(() => checks).toBe(1)
  clock.advance(30_001)
  const frames = await stream.rest()
  expect(find(frames, 'tool_result').tool_output).toBe('paid')
  expect(requests).toBe(1)
  expect(booked).toBe(1)
})
