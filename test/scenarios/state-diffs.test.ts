import { describe, expect, onTestFinished, test } from 'vitest'
import type { Agent } from '../../src/core/agent.ts'
import type { Marks, NewEntry } from '../../src/core/store.ts'
import { sha256 } from '../../src/lib/canonical.ts'
import { agui } from '../support/agui.ts'
import { serve } from '../support/serve.ts'
import { temporaryDirectory } from '../support/server.ts'

/** Arrays that a diff by the longest common list would compare for a minute, and then run out of memory. */
const stateOf = (run: number) => ({
  list: Array.from({ length: 1_000 }, (_, i) => run * 1_000_000 + i),
})

const agent: Agent = {
  name: 'lists',
  async *run(ctx) {
    const { run = 0 } = (ctx.state() ?? {}) as { run?: number }
    const parts = [{ type: 'text' as const, text: 'Done.' }]
    yield { type: 'state', value: { ...stateOf(run + 1), run: run + 1 } }
    yield { type: 'message', message: { id: ctx.newId('msg'), role: 'assistant', parts } }
  },
}

const user = (id: string) => ({ id, role: 'user', content: 'go' })

describe('a state whose arrays changed completely', () => {
  test('is sent to the AG-UI client without a costly comparison', async () => {
    const server = await serve({ agents: [agent] })
    const state = { ...stateOf(7), run: 7 }
    const events = await agui(server.url, { messages: [user('m1')], state })
    const told = events.filter(({ type }) => type.startsWith('STATE_'))
    expect(told.at(-1).delta ?? told.at(-1).snapshot).toBeDefined()
    expect(events.at(-1).type).toBe('RUN_FINISHED')
    const stored = await (await server.request('GET', '/copilotkit/threads/c/state')).json()
    expect(stored.state).toEqual({ ...stateOf(8), run: 8 })
  })

  test('does not keep a stored thread from opening', async () => {
    const directory = await temporaryDirectory()
    onTestFinished(() => directory.remove())
    const first = await serve({ agents: [agent] }, { data: directory.path })
    for (const id of ['m1', 'm2']) await (await first.start('c', id)).rest()
    await first.close()
    const server = await serve({ agents: [agent] }, { data: directory.path })
    const past = await (await server.request('GET', '/copilotkit/threads/c/events')).json()
    const states = past.events.filter(({ type }: { type: string }) => type.startsWith('STATE_'))
    expect(states).toHaveLength(2)
    const connected = await server.request('POST', '/copilotkit/agent/lists/connect', {
      ...{ threadId: 'c', runId: 'r', messages: [], tools: [], context: [], state: {} },
    })
    expect(await connected.text()).toContain('"STATE_SNAPSHOT"')
    expect((await agui(server.url, { messages: [user('m3')] })).at(-1).type).toBe('RUN_FINISHED')
  })
})

type Kind = NewEntry['kind']

/** The entries of one run as the version wrote them that compared states without a limit. */
function oldRun(run: number): [kind: Kind, body: object, marks?: Marks][] {
  const runId = `run_${run}`
  const message = (id: string, role: string, text: string) => ({
    ...{ message: { id, role, parts: [{ type: 'text', text }] }, for: 'both' },
  })
  const options = { instructions: [], clientTools: [], forwarded: {}, headers: {} }
  const parentRunId = run === 1 ? null : `run_${run - 1}`
  const facts = { [`run:${runId}`]: 'completed', head: runId }
  return [
    ['run.queued', { agent: 'lists', why: 'start', options, request: `r${run}` }],
    ['message.added', message(`m${run}`, 'user', 'go')],
    ['state.patched', { agent: 'lists', value: stateOf(run) }],
    ['run.started', { leg: 1, parentRunId }],
    ['thread.head', { runId }],
    ['message.added', message(`msg_${run}`, 'assistant', 'Done.')],
    ['run.completed', {}, { facts }],
  ]
}

test('a thread that an older version stored with such states opens on AG-UI connect and run', async () => {
  const server = await serve({ agents: [agent] }, { env: { HANDRAIL_AUDIT: 'off' } })
  const [tenant, owner, at] = ['default', 'local', Date.now()]
  const created = { tenant, owner, clientId: 'c', agent: 'lists' }
  const row = { threadId: 'c', ...created, title: 'go', createdAt: at, updatedAt: at }
  const thread = { ...row, archived: false, status: 'idle' as const, leg: null }
  const entries = [
    ['thread.created' as Kind, created, { thread }] as const,
    ...oldRun(1),
    ...oldRun(2),
  ]
  const actor = { type: 'user' as const, id: owner, wire: 'agui' }
  await server.server.store.append(
    'c',
    entries.map(([kind, content, marks], n) => {
      const body = JSON.stringify(content)
      const ids = n > 0 && { runId: `run_${n < 8 ? 1 : 2}`, legId: `leg_${n < 8 ? 1 : 2}` }
      const about = {
        v: 1 as const,
        id: `e_${n}`,
        threadId: 'c',
        tx: 'tx_1',
        at,
        fence: 0,
        actor,
        kind,
      }
      return { ...about, ...ids, digest: sha256(body), body, ...(marks && { marks }) }
    }),
    {},
  )
  const past = await (await server.request('GET', '/copilotkit/threads/c/events')).json()
  const states = past.events.filter(({ type }: { type: string }) => type.startsWith('STATE_'))
  expect(states).toHaveLength(2)
  const connected = await server.request('POST', '/copilotkit/agent/lists/connect', {
    ...{ threadId: 'c', runId: 'r', messages: [], tools: [], context: [], state: stateOf(9) },
  })
  expect(await connected.text()).toContain(JSON.stringify(stateOf(2)))
  const events = await agui(server.url, { messages: [user('m3')], state: stateOf(9) })
  expect(events.at(-1).type).toBe('RUN_FINISHED')
  expect((await server.chat('c')).interactions).toHaveLength(3)
})

const huge = { list: new Array(30_000).fill(1) }
// biome-ignore format: a table
test.each<[string, object]>([
  ['body.state', { state: huge }],
  ['body.state', { state: { text: 'x'.repeat(1_000_001) } }],
  ['body.forwardedProps', { forwardedProps: huge }],
  ['body.tools.0.parameters', { tools: [{ name: 't', parameters: huge }] }],
])('AG-UI requests whose %s is too large get 400 and write nothing', async (field, part) => {
  const server = await serve({ agents: [agent] })
  const response = await server.request('POST', '/copilotkit/agent/lists/run', {
    ...{ threadId: 'c', runId: 'r', messages: [user('m1')], tools: [], context: [], ...part },
  })
  expect(response.status).toBe(400)
  expect(await response.json()).toMatchObject({ code: 'invalid_request', field })
  expect((await server.request('GET', '/chats/c')).status).toBe(404)
})

test('a long history of large states is read in part, newest last', async () => {
  const writer: Agent = {
    name: 'writer',
    async *run() {
      for (let i = 0; i < 12; i++)
        yield { type: 'state', value: { i, text: `${i}`.repeat(500_000) } }
    },
  }
  const server = await serve({ agents: [writer] })
  await (await server.start('c', 'go')).rest()
  const response = await server.request('GET', '/copilotkit/threads/c/events')
  const text = await response.text()
  expect(text.length).toBeLessThan(4_100_000)
  expect(JSON.parse(text).events.at(-1).type).toBe('RUN_FINISHED')
})
