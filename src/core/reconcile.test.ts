import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Draft, draft, type Known } from './entries.ts'
import { apply } from './fold.ts'
import { type Message, userText } from './messages.ts'
import { reconcile } from './reconcile.ts'
import { emptyState, type ThreadState } from './state.ts'

const assistant = (id: string, calls: string[] = []): Message => ({
  id,
  role: 'assistant',
  parts: [
    { type: 'text', text: `said ${id}` },
    ...calls.map((callId) => ({ type: 'call' as const, callId, name: 'paint', input: '{}' })),
  ],
})
const result = (callId: string, id = `r-${callId}`, text = 'done'): Message => ({
  id,
  role: 'tool',
  callId,
  parts: [{ type: 'text', text }],
})

/** A turn of a conversation: what the user says, what is answered, and which calls stay open. */
interface Turn {
  calls: number
  waits: boolean
}

const ask = (callId: string) => ({
  askId: `ask-${callId}`,
  kind: 'client_tool' as const,
  title: 'Paint',
  step: 'leg',
  key: `call:${callId}`,
  tool: 'paint',
  callId,
  deadline: 1,
  atTimeout: 'reject' as const,
})

/** The journal of such turns, and the list that an attentive client then has. */
function threadOf(turns: readonly Turn[]): { state: ThreadState; list: Message[] } {
  const state = emptyState('t')
  const list: Message[] = []
  const write = (one: Draft) =>
    apply(state, { ...one, seq: state.seq + 1, at: 0, actor: { type: 'user', id: 'u' } } as Known)
  turns.forEach(({ calls, waits }, n) => {
    const at = { runId: `run${n}`, legId: `leg${n}` }
    const user = userText(`u${n}`, `turn ${n}`)
    const callIds = Array.from({ length: calls }, (_, i) => `c${n}-${i}`)
    const said = assistant(`a${n}`, callIds)
    const parentRunId = n === 0 ? null : `run${n - 1}`
    write(draft('run.queued', { agent: 'a', why: 'start', request: `q${n}` }, at))
    write(draft('message.added', { message: user, for: 'both' }, at))
    write(draft('run.started', { leg: 1, parentRunId }, at))
    write(draft('thread.head', { runId: at.runId }, at))
    write(draft('message.added', { message: said, for: 'both' }, at))
    list.push(user, said)
    const open = waits && n === turns.length - 1 && calls > 0
    for (const callId of callIds) {
      if (open) write(draft('ask.raised', { ask: ask(callId) }, at))
      else {
        write(draft('message.added', { message: result(callId), for: 'both' }, at))
        list.push(result(callId))
      }
    }
    const askIds = callIds.map((callId) => `ask-${callId}`)
    write(open ? draft('run.waiting', { askIds }, at) : draft('run.completed', {}, at))
  })
  return { state, list }
}

const turns = fc.array(fc.record({ calls: fc.nat(2), waits: fc.boolean() }), {
  minLength: 1,
  maxLength: 4,
})
const news = fc.array(fc.constantFrom('n1', 'n2', 'n3'), { maxLength: 3 })
const again = { regenerates: true }

describe('a list of a client', () => {
  test('that says nothing new asks for nothing, however much of it is left out', () => {
    fc.assert(
      fc.property(turns, fc.func(fc.boolean()), (all, keep) => {
        const { state, list } = threadOf(all)
        const found = reconcile(state, {
          messages: list.filter(keep),
          regenerates: false,
        })
        expect(found).toEqual({ results: [], said: [], imported: [], instructions: [], forged: [] })
      }),
    )
  })

  test('adds each user message that is new once, in its order, wherever it stands', () => {
    fc.assert(
      fc.property(turns, news, fc.nat(20), (all, ids, place) => {
        const { state, list } = threadOf(all)
        const fresh = ids.map((id) => userText(id, id))
        const at = place % (list.length + 1)
        const messages = [...list.slice(0, at), ...fresh, ...list.slice(at), ...fresh]
        const found = reconcile(state, { messages, ...again })
        expect(found.said.map(({ id }) => id)).toEqual([...new Set(ids)])
        expect(found).toMatchObject({ results: [], imported: [], forged: [] })
      }),
    )
  })

  test('answers open calls once, and never a call that is settled or was never made', () => {
    fc.assert(
      fc.property(turns, fc.boolean(), (all, twice) => {
        const { state, list } = threadOf(all)
        const open = [...state.asks.keys()].map((askId) => askId.slice('ask-'.length))
        const results = open.map((callId) => result(callId, `new-${callId}`))
        const more = twice ? open.map((callId) => result(callId, `second-${callId}`)) : []
        const strange = result('never-made')
        const messages = [...list, ...results, ...more, strange]
        const found = reconcile(state, { messages, ...again })
        expect(found.results.map(({ message }) => message.id)).toEqual(results.map(({ id }) => id))
        expect(found.forged).toEqual(['never-made'])
        expect(found.contradicts).toBeUndefined()
        expect(found.said).toEqual([])
        expect(found.again).toBeUndefined()
      }),
    )
  })

  test('cannot say two things under one id, or of one open call', () => {
    fc.assert(
      fc.property(turns, fc.boolean(), (all, sameId) => {
        const { state, list } = threadOf(all)
        const open = [...state.asks.keys()].map((askId) => askId.slice('ask-'.length))
        const no = (callId: string) => result(callId, `${sameId ? 'r' : 'no'}-${callId}`, 'no')
        const results = open.flatMap((callId) => [result(callId), no(callId)])
        const unlike = reconcile(state, { messages: [...list, ...results], ...again })
        expect(unlike.contradicts?.callId).toBe(open[0])
        const said = [userText('n', 'yes'), userText('n', 'no')]
        const found = reconcile(state, { messages: [...list, ...said], ...again })
        expect(found.contradicts).toBe(said[1])
        const ours = list.find(({ role }) => role === 'assistant')
        const taken = ours && userText(ours.id, 'hello')
        const lost = reconcile(state, { messages: taken ? [...list, taken] : list, ...again })
        expect(lost.contradicts).toBe(taken)
      }),
    )
  })

  test('cannot bring an assistant message, nor change what was said', () => {
    fc.assert(
      fc.property(turns, (all) => {
        const { state, list } = threadOf(all)
        const changed = list.map((one) =>
          one.role === 'tool' ? one : { ...one, parts: [{ type: 'text' as const, text: 'no' }] },
        )
        const messages = [...changed, assistant('invented', ['invented-call'])]
        const found = reconcile(state, { messages, ...again })
        expect(found).toMatchObject({ results: [], said: [], imported: [] })
        expect(found.again).toBeUndefined()
      }),
    )
  })

  test('that ends in what an ended run was asked means again, except in the request that asked', () => {
    fc.assert(
      fc.property(turns, fc.nat(3), fc.boolean(), (all, which, same) => {
        const { state, list } = threadOf(all)
        const n = which % all.length
        const end = list.findIndex(({ id }) => id === `u${n}`) + 1
        const request = same ? `q${n}` : 'another'
        const found = reconcile(state, { messages: list.slice(0, end), request, ...again })
        const idle = state.active === null
        expect(found.again).toBe(idle && !same ? `run${n}` : undefined)
      }),
    )
  })
})

test('the history of a new thread is imported; what the user says last is said', () => {
  const old = [userText('h1', 'who?'), assistant('h2', ['c']), result('c')]
  const messages = [...old, userText('u1', 'and'), userText('u2', 'so?')]
  const found = reconcile(emptyState('t'), { messages, ...again })
  expect(found.said.map(({ id }) => id)).toEqual(['u1', 'u2'])
  expect(found.imported).toEqual(old.map((message) => ({ ...message, imported: true })))
  expect(found.forged).toEqual([])
})

test('instructions are told apart and are never a reason to run', () => {
  const { state, list } = threadOf([{ calls: 0, waits: false }])
  const system: Message = { id: 's', role: 'system', parts: [{ type: 'text', text: 'be brief' }] }
  const found = reconcile(state, { messages: [system, ...list, { ...system, id: 's2' }], ...again })
  expect(found).toMatchObject({ instructions: ['be brief', 'be brief'], said: [] })
  expect(found.again).toBeUndefined()
})

test('an edit stands in the place of the message that it names', () => {
  const { state, list } = threadOf([
    { calls: 0, waits: false },
    { calls: 0, waits: false },
  ])
  const messages = [...list, userText('n', 'rather this')]
  expect(reconcile(state, { messages, branchFrom: 'u0', ...again })).toMatchObject({
    replaces: 'run0',
    said: [{ id: 'n' }],
  })
  expect(reconcile(state, { messages, branchFrom: 'unknown', ...again }).replaces).toBeUndefined()
})
