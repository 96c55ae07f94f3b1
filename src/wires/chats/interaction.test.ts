import { expect, test } from 'vitest'
import { draft, type Known } from '../../core/entries.ts'
import { fold } from '../../core/fold.ts'
import { userText } from '../../core/messages.ts'
import type { Runtime } from '../../core/runtime.ts'
import { chatJson } from './interaction.ts'
import { readable } from './readable.ts'

/** A chat of many short interactions, one after the other. */
function chatOf(count: number, content = 'hi') {
  const entries: Known[] = []
  const add = (one: ReturnType<typeof draft>, runId: string) => {
    const seq = entries.length + 1
    const envelope = { v: 1, id: `e${seq}`, threadId: 't', seq, tx: 'x', at: seq, fence: 0 }
    const actor = { type: 'user', id: 'u' }
    entries.push({ ...envelope, actor, digest: '', ...one, runId, legId: 'l' } as Known)
  }
  for (let n = 0; n < count; n++) {
    const runId = `r${n}`
    add(draft('run.queued', { agent: 'a', why: 'start' }), runId)
    add(draft('message.added', { message: userText(`m${n}`, content), for: 'both' }), runId)
    add(draft('run.started', { leg: 1, parentRunId: n === 0 ? null : `r${n - 1}` }), runId)
    add(draft('thread.head', { runId }), runId)
    add(draft('run.completed', {}), runId)
  }
  return fold('t', entries)
}

test('a chat of ordinary length has every final state', async () => {
  const { interactions } = await chatJson(chatOf(50), { all: false })
  expect(interactions.map((one) => one.final_agent_state?.messages.length)).toEqual(
    Array.from({ length: 50 }, (_, n) => n + 1),
  )
})

test('a very long chat leaves out old final states, and says so, rather than grow without bound', async () => {
  const { interactions } = await chatJson(chatOf(2_000), { all: false })
  expect(interactions).toHaveLength(2_000)
  const kept = interactions.filter((one) => one.final_agent_state !== null)
  expect(kept.length).toBeGreaterThan(5)
  expect(kept.length).toBeLessThan(20)
  expect(interactions.at(-1)?.final_agent_state?.messages).toHaveLength(2_000)
  expect(interactions[0]).toMatchObject({
    final_agent_state: null,
    final_agent_state_omitted: true,
  })
})

test('a chat of long messages leaves out old final states by their characters, and never the last', async () => {
  const states = async (count: number, length: number) => {
    const { interactions } = await chatJson(chatOf(count, 'x'.repeat(length)), { all: false })
    return interactions.map((one) => one.final_agent_state?.messages.length)
  }
  expect(await states(20, 380_000)).toEqual([...Array(19).fill(undefined), 20])
  expect(await states(3, 1_000_000)).toEqual([undefined, undefined, 3])
  expect(await states(20, 10_000)).toEqual(Array.from({ length: 20 }, (_, n) => n + 1))
})

test('the readable files of a chat grow with its length, not with the square of it', async () => {
  const state = chatOf(200, 'x'.repeat(2_000))
  const runIds = [...state.runs.keys()]
  const runtime = { thread: async () => ({ state }) } as unknown as Runtime
  const files = await readable(runtime, 't', runIds)
  expect(Object.keys(files)).toHaveLength(201)
  const length = Object.values(files).reduce<number>(
    (sum, file) => sum + JSON.stringify(file).length,
    0,
  )
  expect(length).toBeLessThan(5 * 200 * 2_000)
  expect(files['interactions/r3.json']).toMatchObject({
    final_agent_state: { messages: Array(4).fill({ role: 'user' }) },
  })
  const content = 'x'.repeat(2_000)
  expect(files['interactions/r199.json']).toMatchObject({
    user_message: content,
    final_agent_state: null,
    final_agent_state_omitted: true,
    messages: [{ role: 'user', content }],
  })
})

test('the server handles other work between the interactions of a long chat', async () => {
  const state = chatOf(2_000)
  let turns = 0
  let building = true
  const turn = () => {
    turns++
    if (building) setImmediate(turn)
  }
  setImmediate(turn)
  const { interactions } = await chatJson(state, { all: false })
  building = false
  expect(interactions).toHaveLength(2_000)
  expect(turns).toBeGreaterThan(0)
})
