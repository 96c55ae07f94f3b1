import { expect, test } from 'vitest'
import type { Caller } from '../../src/core/runtime.ts'
import { scriptedModel, text } from '../../src/models/scripted.ts'
import { cluster } from '../support/cluster.ts'
import { look } from '../support/story.ts'
import { find, tools } from '../support/tools.ts'

const caller: Caller = { tenant: 'default', user: 'local', roles: ['user'], wire: 'test' }
const named = { input: 'input', value: 'value' }
const request = { system: [], messages: [], tools: [] }

/** Two servers with a store in memory between them; every chat looks around nine times. */
async function two() {
  const model = scriptedModel(async function* (asked) {
    if (asked.messages.length === 0) return yield text('aside')
    await new Promise((resolve) => setTimeout(resolve, 25))
    const steps = asked.messages.filter(({ role }) => role === 'assistant').length
    yield steps < 9 ? look(`look-${steps}`, `place ${steps}`) : text('Seen.')
  })
  const { servers, close } = await cluster(2, { model, tools: tools().all })
  const [a, b] = servers as [(typeof servers)[0], (typeof servers)[0]]
  return { a, b, model, close }
}

test('two servers, people and calls beside the run race for one budget: never a call too many', async () => {
  const { a, b, model, close } = await two()
  try {
    for (let round = 0; round < 5; round++) {
      const chat = `c${round}`
      const before = model.requests.length
      await a.runtime.create(caller, chat, {})
      await a.runtime.setGovernor(caller, chat, { isHitlEnabled: true, actionLimit: 5 }, named)
      const stream = await a.start(chat, 'look around')
      const aside = async (at: typeof a) => {
        const about = { agent: 'assistant', clientId: chat }
        try {
          const events = at.runtime.complete(caller, about, request, new AbortController().signal)
          for await (const _ of events);
          return 1
        } catch {
          return 0 // there was no budget left for it
        }
      }
      await Promise.all([aside(b), aside(a), aside(b), aside(b), aside(a)])
      const frames = await stream.until('approval_required')
      expect(model.requests.length - before).toBe(5)
      const { interaction_id } = find(frames, 'interaction_started')
      const { approval_id } = find(frames, 'approval_required')
      // Two answers at once, on different servers: one sets the budget, and the run ends within it.
      const [approved, set] = await Promise.all([
        a.approve(chat, interaction_id, { approval_id, approved: true, newLimit: 20 }),
        b.runtime.setGovernor(caller, chat, { actionLimit: 30 }, named),
      ])
      expect([200, 400]).toContain(approved.status)
      expect([20, 30]).toContain(set.actionLimit)
      expect(find(await stream.rest(), 'interaction_complete').status).toBe('COMPLETED')
      const { state } = await b.runtime.open(caller, chat)
      await expect.poll(() => state.active).toBe(null)
      expect(state.governor.total).toBe(model.requests.length - before)
      const made = [...state.effects.values()].filter(({ intent }) => intent.effect === 'model')
      expect(made.every(({ state: outcome }) => outcome === 'done')).toBe(true)
    }
  } finally {
    await close()
  }
})

test('lowered on one server while the other calls: no call is made that the new limit does not cover', async () => {
  const { a, b, close } = await two()
  try {
    for (let round = 0; round < 8; round++) {
      const chat = `c${round}`
      await a.runtime.create(caller, chat, {})
      await a.runtime.setGovernor(caller, chat, { isHitlEnabled: true, actionLimit: 50 }, named)
      const stream = await a.start(chat, 'look around')
      await stream.until('tool_result')
      await b.runtime.setGovernor(caller, chat, { actionLimit: 3 }, named)
      const frames = await stream.until('approval_required')
      const { tool_input } = find(frames, 'approval_required')
      const { entries } = await journal(b, chat)
      const lowered = entries.findLastIndex(({ kind }) => kind === 'governor.set')
      const calls = (list: typeof entries) =>
        list.filter((one) => one.kind === 'effect.intended' && one.body.effect === 'model').length
      const used = calls(entries.slice(0, lowered))
      expect(calls(entries)).toBe(Math.max(used, 3))
      expect(JSON.parse(tool_input)).toMatchObject({ actionLimit: 3 })
      stream.leave()
    }
  } finally {
    await close()
  }
})

async function journal({ runtime }: Awaited<ReturnType<typeof two>>['a'], chat: string) {
  const thread = await runtime.open(caller, chat)
  return { entries: await thread.entries(0, 10_000) }
}
