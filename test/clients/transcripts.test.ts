import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { type ErrorCode, RuntimeError } from '../../src/core/errors.ts'
import { call, type ScriptedStep, text } from '../../src/models/scripted.ts'
import { story } from '../support/story.ts'
import { type Event, recorder, shape, types } from './judge.ts'
import { ending, interruptsOf, runBody } from './support.ts'

/** One request as the real clients send it, and what of the answer they rely on. */
interface Step {
  get?: string
  post?: string
  patch?: string
  delete?: string
  options?: string
  headers?: Record<string, string>
  /** A run's body, completed with what every client sends; `raw` goes as it is. */
  body?: object
  raw?: unknown
  /** Sent once the journal has such an entry. */
  after?: string
  /** Stays open: it is read when the last step is done. */
  opens?: boolean
  status?: number
  type?: string
  /** All events in order, or some of them in this order; deltas in a row count once. */
  events?: string[]
  contains?: string[]
  without?: Record<string, string>
  end?: object
  json?: object
  answers?: Record<string, string>
  deviates?: string
}

interface Exchange {
  /** The captured transcripts that show it. */
  of: string
  title: string
  model?: [string, ...never[]][][]
  steps: Step[]
}

const read = <T>(name: string): T =>
  JSON.parse(readFileSync(new URL(`shapes/${name}.json`, import.meta.url), 'utf8'))
const exchanges = [...read<Exchange[]>('runs'), ...read<Exchange[]>('requests')]
const deviations = read<Record<string, string>>('deviations')

/** What each event must have for both dialects. */
const required: Record<string, string[]> = {
  RUN_STARTED: ['threadId', 'runId'],
  RUN_FINISHED: ['threadId', 'runId'],
  RUN_ERROR: ['message', 'code'],
  TEXT_MESSAGE_START: ['messageId', 'role'],
  TEXT_MESSAGE_CONTENT: ['messageId', 'delta'],
  TEXT_MESSAGE_END: ['messageId'],
  TOOL_CALL_START: ['toolCallId', 'toolCallName', 'parentMessageId'],
  TOOL_CALL_ARGS: ['toolCallId', 'delta'],
  TOOL_CALL_END: ['toolCallId'],
  TOOL_CALL_RESULT: ['messageId', 'toolCallId', 'content'],
  REASONING_START: ['messageId'],
  REASONING_MESSAGE_START: ['messageId', 'role'],
  REASONING_MESSAGE_CONTENT: ['messageId', 'delta'],
  REASONING_MESSAGE_END: ['messageId'],
  REASONING_END: ['messageId'],
  MESSAGES_SNAPSHOT: ['messages'],
}

const plays: Record<string, (...given: never[]) => ScriptedStep[number]> = {
  text,
  call,
  reasoning: (words: string) => ({ type: 'reasoning', text: words }),
  fail: (code: ErrorCode) => new RuntimeError(code),
  wait: () => 'wait',
}

test.for(exchanges)('$title (transcripts $of)', async ({ model = [], steps }) => {
  const script = model.map((one) => one.map(([kind, ...given]) => plays[kind]!(...given)))
  const server = await story(script)
  const known: Record<string, string> = { $thread: 't' }
  const fill = (value: Step): Step =>
    JSON.parse(JSON.stringify(value).replace(/\$\w+/g, (name) => known[name] ?? name))
  const open: Promise<unknown>[] = []
  for (const given of steps) {
    const step = fill(given)
    if (step.after) await server.recorded('t', step.after)
    const { response, events } = await send(server.url, step)
    expect(response.status, JSON.stringify(step)).toBe(step.status ?? 200)
    const reading = events().then((all) => check(step, all))
    if (step.opens) {
      open.push(reading)
      await server.recorded('t', 'effect.intended')
      continue
    }
    const found = await reading
    const id = found && interruptsOf({ events: found })[0]?.id
    if (id) known.$interrupt = id
    for (const [name, value] of Object.entries(step.answers ?? {}))
      expect(response.headers.get(name)).toBe(value)
  }
  await Promise.all(open)

  function check(step: Step, found: Event[] | object | undefined): Event[] | undefined {
    if (step.json) expect(found).toMatchObject(step.json)
    if (!Array.isArray(found)) return undefined
    for (const event of found)
      for (const field of required[event.type] ?? []) expect(event).toHaveProperty(field)
    for (const [type, field] of Object.entries(step.without ?? {}))
      for (const event of found) if (event.type === type) expect(event).not.toHaveProperty(field)
    if (step.events) expect(shape(found)).toEqual(step.events)
    expect(inOrder(types(found), step.contains ?? []), types(found).join(' ')).toEqual([])
    if (step.end) expect(ending({ events: found })).toMatchObject(step.end)
    return found
  }
})

/** What of `wanted` is not found, looking for one after the other. */
function inOrder(found: readonly string[], wanted: readonly string[]): string[] {
  const left = [...wanted]
  for (const type of found) if (type === left[0]) left.shift()
  return left
}

const methods = ['get', 'post', 'patch', 'delete', 'options'] as const

async function send(base: string, step: Step) {
  const { fetch, streams } = recorder()
  const method = methods.find((one) => step[one] !== undefined)!
  const body = step.body ? runBody('t', [], step.body) : step.raw
  const response = await fetch(`${base}/copilotkit${step[method]}`, {
    method: method.toUpperCase(),
    headers: { 'content-type': 'application/json', ...step.headers },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  const type = response.headers.get('content-type') ?? ''
  const streamed = step.events ?? step.contains
  const expected = step.type ?? (streamed ? 'text/event-stream' : type)
  expect(type).toContain(expected)
  const events = async (): Promise<Event[] | object | undefined> => {
    const words = await response.text()
    if (streams.length > 0) return streams[0]!.events
    return type.includes('json') ? JSON.parse(words) : undefined
  }
  return { response, events }
}

test('every deviation is used by an exchange, and every one that is used has its reason', () => {
  const used = new Set(exchanges.flatMap(({ steps }) => steps.flatMap((one) => one.deviates ?? [])))
  expect([...used].toSorted()).toEqual(Object.keys(deviations).toSorted())
})
