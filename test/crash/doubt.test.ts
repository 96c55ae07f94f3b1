import { writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test, vi } from 'vitest'
import { agui } from '../support/agui.ts'
import { chatsClient } from '../support/chats.ts'
import { generate } from '../support/graphql.ts'
import { receivedBy, startRecord } from '../support/record.ts'
import { temporaryDirectory } from '../support/server.ts'
import { begin, type Place, placeIn } from './life.ts'
import { executions } from './outside.ts'

vi.setConfig({ testTimeout: 120_000 })

/** A way to say what happened. */
type Say = (url: string, askId: string, outcome: string) => Promise<void>

const wires: Record<string, Say> = {
  async chats(url, approval_id, outcome) {
    const client = chatsClient(url)
    const { interactions } = await client.chat('c')
    const body = { approval_id, outcome, ...(outcome === 'happened' && { result: 'it did' }) }
    expect((await client.approve('c', interactions[0].id, body)).status).toBe(200)
  },
  async agui(url, interruptId, outcome) {
    const payload = { outcome, ...(outcome === 'happened' && { result: 'it did' }) }
    const resume = [{ interruptId, status: 'resolved', payload }]
    const events = await agui(url, { runId: `r-${interruptId}`, resume })
    expect(events.at(-1).type).toBe('RUN_FINISHED')
  },
  async graphql(url, askId, outcome) {
    const response =
      outcome === 'happened' ? JSON.stringify({ outcome, result: 'it did' }) : outcome
    const value = JSON.stringify({ askId })
    const metaEvents = [{ name: 'LangGraphInterruptEvent', value, response }]
    await generate(url, 'none', '', { metaEvents, messages: [] })
  },
}

/** Kills a server between a call and the record of it; gives one that has asked about it since. */
async function doubted(words: string) {
  const directory = await temporaryDirectory()
  const place: Place = placeIn(directory.path)
  const first = await begin(place, {}, 'effect.ran:2')
  const stream = await chatsClient(first.url).start('c', words)
  try {
    for await (const _ of stream.frames);
  } catch {}
  expect((await first.exited).signal).toBe('SIGKILL')
  expect(executions(place.outside)).toHaveLength(1)
  const server = await begin(place)
  const end = async () => {
    await server.stop()
    await directory.remove()
  }
  return { place, url: server.url, end }
}

/** What is asked now, and was not before; undefined when the run is over. */
async function question(url: string, before?: string) {
  for (let n = 0; n < 800; n++) {
    const { interactions } = await chatsClient(url).chat('c')
    const [{ approvals, status }] = interactions
    if (approvals && approvals[0].approval_id !== before) return approvals[0]
    if (status === 'COMPLETED') return undefined
    await sleep(25)
  }
  throw new Error('nothing is asked, and nothing ends')
}

const resultOf = async (url: string): Promise<string> => {
  const { interactions } = await chatsClient(url).chat('c')
  return interactions[0].agent_events.find(({ type }: { type: string }) => type === 'TOOL_RESULT')
    .tool_output
}

test.each([
  ['agui', 'happened', 'it did', 1],
  ['agui', 'did_not', 'count_free 100: done', 2],
  ['agui', 'skip', expect.stringContaining('it was skipped'), 1],
  ['graphql', 'happened', 'it did', 1],
  ['graphql', 'did_not', 'count_free 100: done', 2],
  ['graphql', 'skip', expect.stringContaining('it was skipped'), 1],
])('after a kill, %s answers %s (I4)', async (wire, outcome, result, count) => {
  const { place, url, end } = await doubted('free #1')
  const asked = await question(url)
  const { effectId, at } = executions(place.outside)[0]!
  expect(asked).toMatchObject({ kind: 'in_doubt', tool_name: 'count_free' })
  expect(asked.card).toMatchObject({
    title: 'Did this happen? Run count_free',
    arguments: ['n: 100'],
    effect_id: effectId,
    outcomes: ['happened', 'did_not', 'skip'],
    said: { text: 'I will count.' },
  })
  // It began before it did anything, and not long before.
  const began = Date.parse(asked.card.began_at)
  expect(began).toBeLessThanOrEqual(at)
  expect(at - began).toBeLessThan(60_000)
  await wires[wire]!(url, asked.approval_id, outcome)
  expect(await question(url, asked.approval_id)).toBeUndefined()
  expect(await resultOf(url)).toEqual(result)
  const marks = executions(place.outside)
  expect(marks).toHaveLength(count)
  expect(new Set(marks.map((one) => one.effectId)).size).toBe(1)
  await end()
})

test('a tool that can look is let look again, from every wire, until it knows', async () => {
  const { place, url, end } = await doubted('known #1')
  let asked = await question(url)
  for (const wire of ['chats', 'agui', 'graphql']) {
    expect(asked.card.outcomes).toEqual(['happened', 'did_not', 'skip', 'check'])
    const last = asked.approval_id
    await wires[wire]!(url, last, 'check')
    asked = await question(url, last) // it still does not know
    expect(asked.kind).toBe('in_doubt')
  }
  writeFileSync(
    `${place.outside}.known`,
    JSON.stringify({ happened: true, output: 'seen outside' }),
  )
  await wires.chats!(url, asked.approval_id, 'check')
  expect(await question(url, asked.approval_id)).toBeUndefined()
  expect(await resultOf(url)).toBe('seen outside')
  expect(executions(place.outside)).toHaveLength(1)
  await end()
})

test('a tool that cannot look is not asked to', async () => {
  const { url, end } = await doubted('free #1')
  const { approval_id } = await question(url)
  const client = chatsClient(url)
  const { interactions } = await client.chat('c')
  const refused = await client.approve('c', interactions[0].id, { approval_id, outcome: 'check' })
  expect(refused.status).toBe(400)
  expect(await refused.json()).toMatchObject({ error: { code: 'invalid_request' } })
  expect((await question(url)).approval_id).toBe(approval_id)
  await end()
})

test.each([
  ['happened', 1],
  ['did_not', 2],
])(
  'a remote leg that a kill interrupted is executed again only if a person says that it did not happen: %s',
  async (outcome, count) => {
    const directory = await temporaryDirectory()
    const place = placeIn(directory.path)
    const record = await startRecord(`${place.outside}.received`)
    // Long enough for a busy machine: a leg that exceeds its time does not reach the crash point.
    const environment = { CRASH_RECORD: record.url, CRASH_ONCE_TIMEOUT: '8000' }
    const first = await begin(place, environment, 'effect.ran:1')
    const client = chatsClient(first.url)
    const body = { user_message: 'once #1', agent: 'once' }
    const stream = await client.open('POST', '/chats/c/interactions', body)
    try {
      for await (const _ of stream.frames);
    } catch {}
    expect((await first.exited).signal).toBe('SIGKILL')
    expect(receivedBy(record)).toHaveLength(1)
    const server = await begin(place, environment)
    const asked = await question(server.url)
    expect(asked).toMatchObject({ kind: 'in_doubt' })
    expect(receivedBy(record)).toHaveLength(1)
    await wires.chats!(server.url, asked.approval_id, outcome)
    expect(await question(server.url, asked.approval_id)).toBeUndefined()
    const legs = receivedBy(record)
    expect(legs).toHaveLength(count)
    expect(new Set(legs.map((leg) => 'effectId' in leg && leg.effectId)).size).toBe(1)
    await server.stop()
    await record.close()
    await directory.remove()
  },
)
