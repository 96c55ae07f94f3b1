import { describe, expect, test } from 'vitest'
import { type Known, read } from '../../src/core/entries.ts'
import { fold } from '../../src/core/fold.ts'
import { call, scriptedModel, text } from '../../src/models/scripted.ts'
import type { Received } from '../support/record.ts'
import { serve } from '../support/serve.ts'
import { find, tools } from '../support/tools.ts'
import { checkReceived } from './check-received.ts'
import { checkTold, type Thread } from './checker.ts'
import type { Told } from './person.ts'

/** The journal of one run that made two model calls, and had one approval in between. */
async function played() {
  const box = tools()
  const model = scriptedModel(({ messages }) =>
    messages.at(-1)?.role === 'tool'
      ? [text('Sent.')]
      : [call('1', 'send', { to: 'a', amount: 1 })],
  )
  const server = await serve({ model, tools: box.all, builtIns: false })
  const stream = await server.start('c', 'approve #7')
  const runId = stream.response.headers.get('x-interaction-id')!
  const { approval_id } = find(await stream.until('approval_required'), 'approval_required')
  await server.approve('c', runId, { approval_id, approved: true })
  await stream.rest()
  const { store } = server.server
  const entries = (await store.read('c', { limit: 1e6 })).map(read)
  const row = (await store.thread('c'))!
  const thread: Thread = { threadId: 'c', row, entries, state: fold('c', entries) }
  const told: Told = {
    accepted: new Map([[runId, 'c']]),
    answers: new Map([[approval_id as string, { state: 'approved', chatId: 'c' }]]),
    deleted: new Set(),
    numbers: new Map([[7, 'c']]),
  }
  return { thread, told }
}

const model = (n: number): Received => ({ kind: 'model', n })

describe('the checker', () => {
  test('accepts a record that agrees with the journal, and complains about every other', async () => {
    const { thread, told } = await played()
    const problems = (...received: Received[]) => {
      const found: string[] = []
      checkReceived([thread], received, told, (problem) => found.push(problem))
      return found
    }
    expect(problems(model(7), model(7))).toEqual([])
    expect(problems(model(7), model(7), model(7))).toEqual([
      'model call of message #7: received 3 times, granted 2 times',
    ])
    expect(problems(model(7))).toEqual([
      'model call of message #7: 2 results, and it was received 1 times',
    ])
    expect(problems(model(7), model(7), model(8))).toEqual([
      'model call of message #8: received 1 times, granted 0 times',
    ])
    const leg: Received = { kind: 'remote', effectId: 'eff_x', n: 9 }
    expect(problems(model(7), model(7), leg)).toEqual(['eff_x: received 1 times, granted 0 times'])
  })

  /** The journal of a run at a remote agent, intended this often. */
  async function playedFar(attempts: number, idempotent: boolean) {
    const { thread, told } = await played()
    const intent = thread.entries.find((one) => one.kind === 'effect.intended')!
    const about = { effect: 'remote', effectId: 'eff_far', idempotent }
    const forged = Array.from({ length: attempts }, (_, n) => ({
      ...{ ...intent, seq: thread.entries.length + 1 + n },
      body: { ...intent.body, ...about, attempt: n + 1 },
    })) as Known[]
    const entries = [...thread.entries, ...forged]
    return (legs: number) => {
      const leg: Received = { kind: 'remote', effectId: 'eff_far', n: 7 }
      const received = [model(7), model(7), ...Array.from({ length: legs }, () => leg)]
      const found: string[] = []
      const far: Thread = { ...thread, entries, state: fold('c', entries) }
      checkReceived([far], received, told, (problem) => found.push(problem))
      return found
    }
  }

  test('complains about a remote leg that was executed more often than it was granted', async () => {
    const problems = await playedFar(1, true)
    expect(problems(1)).toEqual([])
    expect(problems(2)).toEqual(['eff_far: received 2 times, granted 1 times'])
  })

  test('complains about a remote leg that was repeated although it is not idempotent', async () => {
    expect((await playedFar(2, true))(2)).toEqual([])
    expect((await playedFar(2, false))(2)).toEqual([
      'eff_far: received 2 times, and people permitted 0 repetitions',
    ])
  })

  test('complains about a run or a decision that was acknowledged and is not in the journal', async () => {
    const { thread, told } = await played()
    const problems = (of: Told) => {
      const found: string[] = []
      checkTold([thread], of, (problem) => found.push(problem))
      return found
    }
    expect(problems(told)).toEqual([])
    const accepted = new Map([['run_lost', 'c']])
    expect(problems({ ...told, accepted })).toEqual(['c: run_lost was accepted and is gone'])
    const lost = new Map([['ask_lost', { state: 'approved', chatId: 'c' }]])
    expect(problems({ ...told, answers: lost })).toEqual([
      'ask_lost: said approved, and the journal has no answer',
    ])
    expect(
      problems({ ...told, answers: lost, accepted: new Map(), deleted: new Set(['d']) }),
    ).toHaveLength(1)
    const [[askId]] = [...told.answers] as [[string, unknown]]
    const other = new Map([[askId, { state: 'rejected', chatId: 'c' }]])
    expect(problems({ ...told, answers: other })).toEqual([`${askId}: said rejected, is approved`])
    const outcome = new Map([[askId, { state: 'approved', outcome: 'happened', chatId: 'c' }]])
    expect(problems({ ...told, answers: outcome })).toEqual([
      `${askId}: said happened, is undefined`,
    ])
  })
})
