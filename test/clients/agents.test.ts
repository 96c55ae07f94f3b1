import { describe, expect, test } from 'vitest'
import type { Agent } from '../../src/core/agent.ts'
import { type Gate, gate } from '../support/gate.ts'
import { serve } from '../support/serve.ts'
import { types } from './judge.ts'
import { clients, finished, httpClient } from './support.ts'

/** Works in two named steps and shows a plan; stands between them where a gate is. */
const planner = (stands?: Gate): Agent => ({
  name: 'planner',
  async *run(ctx) {
    const plan = (done: number) =>
      ({ type: 'activity', id: 'plan', activity: 'PLAN', content: { done, of: 2 } }) as const
    yield { type: 'step', name: 'look', done: false }
    yield plan(0)
    yield { type: 'event', name: 'weather', value: { sky: 'grey' } }
    await stands?.pass(ctx.signal)
    yield { type: 'step', name: 'look', done: true }
    yield { type: 'step', name: 'write', done: false }
    yield plan(2)
    const parts = [{ type: 'text' as const, text: 'Planned.' }]
    yield { type: 'message', message: { id: ctx.newId('msg'), role: 'assistant', parts } }
    // It does not say that `write` is over: the end of the run does.
  },
})

describe.for(clients)('$name', ({ open }) => {
  test('is told of steps, activities and events, and all that is open is closed', async () => {
    const server = await serve({ agents: [planner()] })
    const client = await open(server.url, 't')
    const stream = await client.say('plan')
    finished(stream)
    expect(types(stream.events).filter((type) => /STEP|ACTIVITY|CUSTOM/.test(type))).toEqual([
      ...['STEP_STARTED', 'ACTIVITY_SNAPSHOT', 'CUSTOM', 'STEP_FINISHED'],
      ...['STEP_STARTED', 'ACTIVITY_SNAPSHOT', 'STEP_FINISHED'],
    ])
    expect(stream.events.find(({ type }) => type === 'CUSTOM')).toMatchObject({
      name: 'weather',
      value: { sky: 'grey' },
    })
    const shows = {
      id: 'plan',
      role: 'activity',
      activityType: 'PLAN',
      content: { done: 2, of: 2 },
    }
    expect(client.agent.messages).toContainEqual(shows)
    const fresh = await open(server.url, 't')
    await fresh.connect()
    expect(fresh.agent.messages).toContainEqual(shows)
    expect(fresh.agent.messages).toHaveLength(client.agent.messages.length)
  })

  test('joins in the middle of a step, which it is told of, and sees its end', async () => {
    const stands = gate()
    const server = await serve({ agents: [planner(stands)] })
    const runner = await open(server.url, 't')
    const saying = runner.say('plan')
    await stands.reached
    await server.recorded('t', 'event')
    const joiner = await open(server.url, 't')
    const joining = joiner.connect()
    while (joiner.streams.length === 0) await new Promise((resolve) => setImmediate(resolve))
    stands.open()
    const [, joined] = await Promise.all([saying, joining])
    finished(joined)
    const steps = joined.events.filter(({ type }) => type.startsWith('STEP'))
    expect(steps.map(({ type, stepName }) => `${type} ${stepName}`)).toEqual([
      ...['STEP_STARTED look', 'STEP_FINISHED look', 'STEP_STARTED write', 'STEP_FINISHED write'],
    ])
    expect(joiner.shown()).toEqual(runner.shown())
  })
})

test('an agent that says more than can be written has to wait', async () => {
  let ahead = 0
  const chatty: Agent = {
    name: 'chatty',
    async *run(ctx) {
      const { state } = await server.server.runtime.thread(ctx.threadId)
      const { seq } = state
      for (let n = 0; n < 3_000; n++) {
        yield { type: 'event', name: 'word', value: n }
        ahead = Math.max(ahead, n - (state.seq - seq))
      }
    },
  }
  const server = await serve({ agents: [chatty] })
  const stream = await httpClient(server.url, 't').say('talk')
  finished(stream)
  expect(stream.events.filter(({ name }) => name === 'word')).toHaveLength(3_000)
  expect(ahead).toBeLessThan(600)
})
