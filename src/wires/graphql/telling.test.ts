import { expect, test } from 'vitest'
import { type Body, draft, type Kind, type Known } from '../../core/entries.ts'
import { apply } from '../../core/fold.ts'
import { emptyState } from '../../core/state.ts'
import type { Thread } from '../../core/thread.ts'
import { type Listener, Telling } from './telling.ts'

const original = { amount: 5 }
const edited = { amount: 2 }

/** A run whose call is approved with other arguments, and one client that reads it. */
function reading(has: readonly string[] = []) {
  const state = emptyState('t')
  const to: Listener = {
    ...{ threadId: 't', agent: undefined, tools: new Set(), hidden: new Set() },
    ...{ has: new Set(has), endsInCall: false, state: undefined },
  }
  const telling = new Telling(to, { state } as unknown as Thread, 'r', undefined, () => false)
  const entries: Known[] = []
  const write = <K extends Kind>(kind: K, body: Body<K>) => {
    const entry = {
      ...{ v: 1, id: `e${state.seq}`, threadId: 't', seq: state.seq + 1, tx: 'x', at: 1, fence: 0 },
      ...{ actor: { type: 'user', id: 'u' }, digest: '', runId: 'r', legId: 'l' },
      ...draft(kind, body),
    } as Known
    apply(state, entry)
    entries.push(entry)
    return entry
  }
  const call = { type: 'call' as const, callId: 'c', name: 'pay', input: JSON.stringify(original) }
  const ask = {
    ...{ askId: 'ask_1', kind: 'approval' as const, title: 'Pay', step: 'l', key: 'call:c' },
    ...{ tool: 'pay', callId: 'c', input: original, digest: 'd1', deadline: 9 },
    atTimeout: 'reject' as const,
  }
  write('thread.created', { tenant: 't', owner: 'u', clientId: 'c', agent: 'a' })
  write('run.queued', { agent: 'a', why: 'start' })
  write('thread.head', { runId: 'r' })
  write('run.started', { leg: 1, parentRunId: null })
  const message = write('message.added', {
    ...{ message: { id: 'm', role: 'assistant', parts: [call] }, for: 'both' },
  })
  const finish = () => {
    write('ask.raised', { ask })
    const waiting = write('run.waiting', { askIds: ['ask_1'] })
    write('ask.answered', { askId: 'ask_1', state: 'approved', input: edited, digest: 'd2' })
    write('run.queued', { agent: 'a', why: 'answers' })
    return [waiting, write('run.completed', {})]
  }
  return { telling, message, finish }
}

const argumentsIn = (events: readonly object[]) =>
  events.map((event) => ('args' in event ? event.args : '')).join('')

/** Arguments of the calls in the agent state that ends a stream, if it has messages. */
const loadedIn = (events: readonly { type: string }[]) => {
  const last = events.find(({ type }) => type === 'AgentStateMessage') as { state?: unknown }
  const state = typeof last?.state === 'string' ? JSON.parse(last.state) : (last?.state ?? {})
  return (state.messages ?? []).flatMap((one: { arguments?: object }) => one.arguments ?? [])
}

test('a call that was edited before it is sent has the arguments that ran', () => {
  const { telling, message, finish } = reading()
  const rest = finish()
  expect(argumentsIn(telling.entry(message))).toBe(JSON.stringify(edited))
  expect(loadedIn(rest.flatMap((entry) => telling.entry(entry)))).toEqual([])
})

test('a call of which a delta was sent ends as the model wrote it, and the last state has the arguments that ran', () => {
  const { telling, message, finish } = reading()
  const piece = { kind: 'input', id: 'c', messageId: 'm', name: 'pay', text: '{"amo' } as const
  const first = telling.piece(piece, 1)
  const rest = finish()
  const events = [...first, ...telling.entry(message)]
  expect(argumentsIn(events)).toBe(JSON.stringify(original))
  expect(loadedIn(rest.flatMap((entry) => telling.entry(entry)))).toEqual([edited])
})

test('a call that is edited after it was sent is in the last state with the arguments that ran', () => {
  const { telling, message, finish } = reading()
  expect(argumentsIn(telling.entry(message))).toBe(JSON.stringify(original))
  expect(loadedIn(finish().flatMap((entry) => telling.entry(entry)))).toEqual([edited])
})
