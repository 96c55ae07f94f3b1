import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { anyJournal } from '../../test/support/arbitrary.ts'
import { interactionJson } from '../wires/chats/interaction.ts'
import { branch, historyFor, messagesOf, pendingAsks } from './branch.ts'
import { draft, type Known } from './entries.ts'
import { apply, fold } from './fold.ts'
import { marksOf } from './marks.ts'
import { userText } from './messages.ts'
import { emptyState } from './state.ts'

const at = (seq: number, one: ReturnType<typeof draft>): Known =>
  ({
    v: 1,
    id: `e${seq}`,
    threadId: 't',
    seq,
    tx: 'tx',
    at: seq,
    fence: 0,
    actor: { type: 'user', id: 'u' },
    digest: '',
    ...one,
  }) as Known

describe('fold', () => {
  test('is total: any valid entries, in any order, give a state that can be read', () => {
    fc.assert(
      fc.property(anyJournal, (entries) => {
        const state = fold('t', entries)
        expect(state.seq).toBe(entries.length)
        messagesOf(state)
        for (const run of state.runs.values()) {
          branch(state, run.runId)
          historyFor(state, run)
          pendingAsks(state, run)
          interactionJson(state, run, true)
        }
      }),
      { numRuns: 500 },
    )
  })

  test('gives the same state in one go and entry by entry, and after a round trip through JSON', () => {
    fc.assert(
      fc.property(anyJournal, (entries) => {
        const state = emptyState('t')
        for (const entry of JSON.parse(JSON.stringify(entries)) as Known[]) apply(state, entry)
        expect(JSON.stringify([...state.runs])).toEqual(
          JSON.stringify([...fold('t', entries).runs]),
        )
        expect(state.head).toEqual(fold('t', entries).head)
      }),
    )
  })

  test('has marks for any entry, and they name facts as text', () => {
    fc.assert(
      fc.property(anyJournal, (entries) => {
        const state = fold('t', entries)
        for (const entry of entries) {
          const { facts = {} } = marksOf(entry, state)
          for (const value of Object.values(facts))
            expect(value === null || typeof value === 'string').toBe(true)
        }
      }),
    )
  })

  test('an edited message leaves the old branch and keeps its run', () => {
    const runs = ['one', 'two', 'three'].map((name) => ({ runId: name, legId: name }))
    const [one, two, three] = runs as [(typeof runs)[0], (typeof runs)[0], (typeof runs)[0]]
    const queued = draft('run.queued', { agent: 'a', why: 'start' })
    const said = (id: string) => draft('message.added', { message: userText(id, id), for: 'both' })
    const started = (parentRunId: string | null) => draft('run.started', { leg: 1, parentRunId })
    const state = fold('t', [
      at(1, { ...queued, ...one }),
      at(2, { ...said('m1'), ...one }),
      at(3, { ...started(null), ...one }),
      at(4, { ...queued, ...two }),
      at(5, { ...said('m2'), ...two }),
      at(6, { ...started('one'), ...two }),
      at(7, draft('thread.head', { runId: 'two' })),
      at(8, { ...queued, ...three }),
      at(9, { ...said('m3'), ...three }),
      at(10, { ...started('one'), ...three }),
      at(11, draft('thread.head', { runId: 'three' })),
    ])
    expect(messagesOf(state).map(({ id }) => id)).toEqual(['m1', 'm3'])
    expect(messagesOf(state, 'two').map(({ id }) => id)).toEqual(['m1', 'm2'])
    expect(state.runs.size).toBe(3)
  })
})
