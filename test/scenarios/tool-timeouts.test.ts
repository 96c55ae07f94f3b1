import { expect, test } from 'vitest'
import { z } from 'zod'
import { defineTool } from '../../src/core/tool.ts'
import { call, scriptedModel, text } from '../../src/models/scripted.ts'
import { agui } from '../support/agui.ts'
import { gate } from '../support/gate.ts'
import { serve } from '../support/serve.ts'
import { find, problem } from '../support/tools.ts'
import { warpClock } from '../support/warp-clock.ts'

/** A server whose tool `pay` exceeds its timeout of 10 s and returns when the test says so. */
async function slowBank() {
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
  const server = await serve({ model, tools: [pay], policy, builtIns: false }, { clock })
  const exceed = async () => {
    await bank.reached
    clock.advance(10_001)
    await new Promise((resolve) => setTimeout(resolve, 20))
    clock.advance(2_001)
  }
  return { server, bank, exceed, runs: () => runs }
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
