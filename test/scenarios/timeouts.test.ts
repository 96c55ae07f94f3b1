import { expect, test } from 'vitest'
import type { PolicyRule } from '../../src/core/policy.ts'
import { call, scriptedModel, text } from '../../src/models/scripted.ts'
import { serve } from '../support/serve.ts'
import { find, names, problem, said, seedFrames, tools } from '../support/tools.ts'
import { warpClock } from '../support/warp-clock.ts'

async function waiting(rule: Partial<PolicyRule> = {}) {
  const box = tools()
  const clock = warpClock()
  const model = scriptedModel([[call('1', 'send', { to: 'ann', amount: 5 })], [text('So be it.')]])
  const policy: PolicyRule[] = [{ tool: 'send', decision: 'ask', timeout: 60_000, ...rule }]
  const settings = { model, tools: box.all, builtIns: false, policy }
  const server = await serve(settings, { clock, env: { HANDRAIL_LEASE_MS: '3600000' } })
  const stream = await server.start('c', 'pay')
  const ask = find(await stream.until('approval_required'), 'approval_required')
  await server.recorded('c', 'run.waiting')
  const id = stream.response.headers.get('x-interaction-id')!
  return { server, box, clock, model, stream, ask, id }
}

test('an approval nobody gives is refused when its time is over, and the model hears it', async () => {
  const { server, box, clock, model, stream, ask, id } = await waiting()
  expect(Date.parse(ask.timeout_at) - clock.now()).toBeGreaterThan(0)
  expect(Date.parse(ask.timeout_at) - clock.now()).toBeLessThanOrEqual(60_000)
  clock.advance(60_001)
  const frames = seedFrames(await stream.rest())
  expect(names(frames)).toEqual(['rejected', 'tool_result', 'answer', 'interaction_complete'])
  expect(frames[0]?.data).toMatchObject({ state: 'timeout', reason: 'Approval request timed out' })
  expect(said(model.requests[1]).at(-1)).toMatch(/Nobody approved this call in time/)
  expect(box.sent).toEqual([])
  const { approval_id } = ask
  const late = await server.approve('c', id, { approval_id, approved: true })
  expect(await problem(late)).toMatchObject({ http: 400, decision: { state: 'timeout' } })
})

test('a rule may say that silence is consent: it runs once, and says who decided', async () => {
  const { box, clock, stream } = await waiting({ atTimeout: 'approve' })
  clock.advance(60_001)
  const frames = seedFrames(await stream.rest())
  const after = ['approved', 'tool_call', 'tool_result', 'answer', 'interaction_complete']
  expect(names(frames)).toEqual(after)
  expect(frames[0]?.data).toMatchObject({ by: 'timer', reason: expect.stringMatching(/policy/) })
  expect(box.sent).toHaveLength(1)
})

test('a rule may end the run when nobody answers', async () => {
  const { box, clock, model, stream } = await waiting({ atTimeout: 'stop' })
  clock.advance(60_001)
  const frames = await stream.rest()
  expect(names(frames)).toEqual(['rejected', 'cancelled', 'interaction_complete'])
  expect(find(frames, 'cancelled')).toMatchObject({ reason: 'Nobody answered in time.' })
  expect(box.sent).toEqual([])
  expect(model.requests).toHaveLength(1)
})

test('an answer that comes too late does not count, though no timer has run yet (I2)', async () => {
  const { server, box, clock, ask, id, stream } = await waiting({ atTimeout: 'reject' })
  const { approval_id } = ask
  const deciding = server.approve('c', id, { approval_id, approved: true })
  clock.advance(60_001) // before the request can have arrived
  expect(await problem(await deciding)).toMatchObject({
    http: 400,
    code: 'ask_settled',
    decision: { state: 'timeout' },
  })
  await stream.rest()
  expect(box.sent).toEqual([])
})

test('a deadline that passed while the server was down counts when it is back', async () => {
  const { server, box, model, stream, id } = await waiting({ timeout: 60_000 })
  stream.leave()
  await server.close()
  const clock = warpClock()
  clock.advance(120_000)
  const settings = { model, tools: box.all, builtIns: false }
  const env = { HANDRAIL_LEASE_MS: '3600000' }
  const again = await serve(settings, { clock, env, data: server.data })
  const frames = seedFrames(await (await again.join('c', id)).rest())
  expect(names(frames).slice(-4)).toEqual([
    'rejected',
    'tool_result',
    'answer',
    'interaction_complete',
  ])
  expect(box.sent).toEqual([])
})
