import { expect, test } from 'vitest'
import type { ToolUse } from '../../src/core/tool.ts'
import { call, scriptedModel, text } from '../../src/models/scripted.ts'
import { gate } from '../support/gate.ts'
import { serve } from '../support/serve.ts'
import { temporaryDirectory } from '../support/server.ts'
import { find, names, problem, seedFrames, tools } from '../support/tools.ts'
import { warpClock } from '../support/warp-clock.ts'

const steps = [[call('1', 'look', { at: 'sea' })], [text('Blue.')]]
const env = { HANDRAIL_LEASE_MS: '3600000' }

/** A server that is closed while its tool is at work, and the one that comes after it. */
async function closedDuring(run: (use: ToolUse, at: ReturnType<typeof gate>) => Promise<unknown>) {
  const directory = await temporaryDirectory()
  const data = directory.path
  const { look } = tools()
  const inside = gate()
  let runs = 0
  const tool = {
    ...look,
    run: (_: unknown, use: ToolUse) => (++runs > 1 ? Promise.resolve('again') : run(use, inside)),
  }
  const clock = warpClock()
  const first = await serve(
    { model: scriptedModel(steps), tools: [tool], builtIns: false },
    { clock, env, data },
  )
  const stream = await first.start('c', 'look')
  await first.recorded('c', 'run.started')
  const id = stream.response.headers.get('x-interaction-id')!
  const next = async () => {
    const later = warpClock()
    later.advance(3_600_000) // whatever the first one had begun is over
    const model = scriptedModel(steps.slice(1))
    const settings = { model, tools: [tool], builtIns: false }
    const server = await serve(settings, { clock: later, env, data })
    return { server, model, joined: await server.join('c', id) }
  }
  return { first, clock, inside, stream, id, next, runs: () => runs }
}

test('a text that is being written when the server stops is taken back and written again', async () => {
  const { path: data, remove } = await temporaryDirectory()
  const inside = gate()
  const model = scriptedModel(async function* (_request, n, signal) {
    yield text('It is ')
    if (n === 0) await inside.pass(signal)
    yield text('blue.')
  })
  const first = await serve({ model, builtIns: false }, { data })
  const stream = await first.start('c', 'the sea?')
  const shown = await stream.until('answer_delta')
  await first.close()
  const second = await serve({ model, builtIns: false }, { data })
  const id = stream.response.headers.get('x-interaction-id')!
  const rest = await (await second.join('c', id, shown.at(-1)!.id)).rest()
  expect(find(rest, 'retracted').ids).toEqual([find(shown, 'answer_delta').message_id])
  expect(find(rest, 'answer').content).toBe('It is blue.')
  expect(find(rest, 'interaction_complete').status).toBe('COMPLETED')
  await second.close()
  await remove()
})

test('a tool that comes back while the server stops is not run again (I3)', async () => {
  const { first, clock, inside, stream, next, runs } = await closedDuring(
    ({ signal }, at) =>
      new Promise((resolve) => {
        signal.addEventListener('abort', () =>
          setImmediate(() => {
            // Comes back just after everyone stopped waiting for it.
            void clock.sleep(2_000).then(() => resolve('saw sea, late'))
            void at.pass()
          }),
        )
      }),
  )
  await stream.until('tool_call')
  const closing = first.close()
  await inside.reached
  clock.advance(2_000)
  await closing
  const { joined, model } = await next()
  const frames = seedFrames(await joined.rest())
  expect(names(frames).slice(-3)).toEqual(['tool_result', 'answer', 'interaction_complete'])
  expect(find(frames, 'tool_result').tool_output).toBe('saw sea, late')
  expect(runs()).toBe(1)
  expect(model.requests).toHaveLength(1)
})

test('a tool that the stopping server broke off is in doubt: a person is asked (I4)', async () => {
  const { first, inside, stream, id, next, runs } = await closedDuring(({ signal }, at) =>
    at.pass(signal),
  )
  await inside.reached
  await first.close()
  stream.leave()
  const { server, joined } = await next()
  const ask = find(await joined.until('approval_required'), 'approval_required')
  expect(ask).toMatchObject({ kind: 'in_doubt', tool_name: 'look' })
  expect(runs()).toBe(1)
  const { approval_id } = ask
  const bad = async (said: object) =>
    (await problem(await server.approve('c', id, { approval_id, ...said }))).field
  expect(await bad({ approved: true })).toBe('body.outcome')
  expect(await bad({ approved: true, edited_input: { at: 'lake' } })).toBe('body.edited_input')
  expect(await bad({ approved: true, remember: true })).toBe('body.remember')
  expect(await bad({ approved: false, outcome: 'did_not' })).toBe('body.approved')
  expect(await bad({ outcome: 'skip', result: 'it was blue' })).toBe('body.result')
  expect(await bad({ answer: 'it was blue' })).toBe('body.outcome')
  expect(await bad({ outcome: 'check' })).toBe('body.outcome')
  await server.approve('c', id, { approval_id, outcome: 'happened', result: 'it was blue' })
  const frames = await joined.rest()
  expect(find(frames, 'tool_result').tool_output).toBe('it was blue')
  expect(runs()).toBe(1)
})
