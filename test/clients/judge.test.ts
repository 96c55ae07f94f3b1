import { expect, test } from 'vitest'
import { type Event, judge } from './judge.ts'

const started = { type: 'RUN_STARTED', threadId: 't', runId: 'r' }
const finished = { type: 'RUN_FINISHED', threadId: 't', runId: 'r' }
const begun = { type: 'TEXT_MESSAGE_START', messageId: 'm', role: 'assistant' }
const ended = { type: 'TEXT_MESSAGE_END', messageId: 'm' }
const thinking = { type: 'REASONING_START', messageId: 'm' }
const cancelled = { ...finished, outcome: { type: 'cancelled' } }

const judged = (events: Event[], request: object = {}) =>
  judge({ url: 'here', request, response: new Response(), events, whole: true })

test.for<[string, Event[], object?]>([
  ['a run', [started, begun, ended, finished]],
  ['nothing at all, as of an unknown thread', []],
  ['a refusal', [{ type: 'RUN_ERROR', message: 'No.', code: 'x' }]],
  ['a cancelled end, to who speaks 1.0', [started, cancelled], { protocolVersion: '1.0' }],
])('the judges accept %s', async ([, events, request]) => {
  await judged(events, request)
})

test.for<[string, Event[]]>([
  ['no end', [started, begun, ended]],
  ['two ends', [started, finished, started, finished]],
  ['an end without ids', [started, { type: 'RUN_FINISHED' }]],
  ['no start', [begun, ended, finished]],
  ['a text that stays open', [started, begun, finished]],
  ['a thought that stays open', [started, thinking, finished]],
  ['a text that ends before it begins', [started, ended, finished]],
  ['an event nobody knows', [started, { type: 'MOON_RISEN' }, finished]],
  ['a field nobody knows', [started, { ...begun, color: 'red' }, ended, finished]],
  ['null for nothing', [started, { ...begun, name: null }, ended, finished]],
  ['a cancelled end, to who does not speak 1.0', [started, cancelled]],
])('the judges refuse %s', async ([, events]) => {
  await expect(judged(events)).rejects.toThrow()
})
