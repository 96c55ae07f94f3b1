import { expect, test } from 'vitest'
import { draft, type Known } from '../../core/entries.ts'
import { fold } from '../../core/fold.ts'
import { userText } from '../../core/messages.ts'
import { chatJson } from './interaction.ts'

/** A chat of many short interactions, one after the other. */
function chatOf(count: number) {
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
    add(draft('message.added', { message: userText(`m${n}`, 'hi'), for: 'both' }), runId)
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
