import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { type LangGraphRemote, langGraphRemote } from '../../../test/support/langgraph-remote.ts'
import { localBus } from '../../bus/local/bus.ts'
import type { Agent } from '../../core/agent.ts'
import { userText } from '../../core/messages.ts'
import { createRuntime, type RuntimeOptions } from '../../core/runtime.ts'
import type { Store } from '../../core/store.ts'
import { systemClock } from '../../lib/clock.ts'
import { scriptedModel, text } from '../../models/scripted.ts'
import { localQueue } from '../../queue/local/queue.ts'
import { memoryStore } from '../../stores/memory/store.ts'
import { workflow } from '../workflow/agent.ts'
import { aguiAgent } from './agui/agent.ts'
import { copilotKitEndpoint } from './copilotkit/endpoint.ts'
import { langGraphPlatform } from './langgraph-platform/agents.ts'

const caller = { tenant: 't', user: 'u', roles: [], wire: 'test' }
const silent = { info() {}, warn() {}, error() {} }

/** A remote that handles requests with `answer` and records their paths. */
async function remote(answer: (request: IncomingMessage, response: ServerResponse) => void) {
  const paths: string[] = []
  const server = createServer((request, response) => {
    paths.push(request.url ?? '')
    request.resume().on('end', () => answer(request, response))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, paths }
}

/** Runs the agent on a server that loses its lease when `lose` is called. */
async function runUntilLost(agentOf: (lose: () => void) => Promise<Agent>): Promise<void> {
  const inner = memoryStore({ clock: systemClock })
  let slept = 0
  let lost = false
  const clock = { ...systemClock, monotonic: () => systemClock.monotonic() + slept }
  const store: Store = {
    ...inner,
    claim: async (...given) => (lost ? undefined : await inner.claim(...given)),
    renew: async (...given) => (lost ? new Set() : await inner.renew(...given)),
  }
  const agent = await agentOf(() => {
    lost = true
    slept = 20_000
  })
  let ended = 0
  const runtime = createRuntime({
    ...{ store, clock, bus: localBus(), queue: localQueue(systemClock), leaseTtl: 30_000 },
    log: { ...silent, info: (_, message) => void (message === 'leg ends' && ended++) },
    agents: [{ agent, model: scriptedModel(() => [text('unused')]) }],
  })
  const served = runtime.serve()
  await runtime.start(caller, 'c', { messages: [userText('m', 'go')] })
  await vi.waitFor(() => expect(ended).toBe(1), { timeout: 15_000, interval: 20 })
  await runtime.stop(0).then(() => served)
}

const refuse = (response: ServerResponse) => response.writeHead(429).end('later')

test('an AG-UI run is not retried by a server that has lost the thread meanwhile', async () => {
  let lose = () => {}
  const { url, paths } = await remote((_, response) => {
    lose()
    refuse(response)
  })
  await runUntilLost(async (cut) => {
    lose = cut
    return aguiAgent({ name: 'far', url: `${url}/run`, private: true })
  })
  expect(paths).toEqual(['/run'])
})

test('a CopilotKit agent is not retried by a server that has lost the thread meanwhile', async () => {
  let lose = () => {}
  const { url, paths } = await remote((request, response) => {
    if (request.url !== '/info') {
      lose()
      return refuse(response)
    }
    const info = { agents: [{ name: 'far', description: '' }], actions: [] }
    return response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(info))
  })
  await runUntilLost(async (cut) => {
    lose = cut
    const { agents } = await copilotKitEndpoint({ url, private: true }).find(
      AbortSignal.timeout(5_000),
    )
    return agents[0]!
  })
  expect(paths).toEqual(['/info', '/agents/execute'])
})

test('a LangGraph run is not started by a server that lost the thread while it made its thread', async () => {
  let lose = () => {}
  const { url, paths } = await remote((_, response) => {
    lose()
    const thread = { thread_id: '00000000-0000-8000-8000-000000000000' }
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(thread))
  })
  await runUntilLost(async (cut) => {
    lose = cut
    return langGraphPlatform({ deploymentUrl: url, agents: ['far'], private: true })[0]!
  })
  expect(paths).toEqual(['/threads'])
})

/** Starts a run on a server that freezes, and has a second one take it over. Returns its final state. */
async function takenOver(far: LangGraphRemote, agents: RuntimeOptions['agents'], agent: string) {
  const store = memoryStore({ clock: systemClock })
  const make = (on: Store) =>
    createRuntime({
      ...{ store: on, bus: localBus(), queue: localQueue(systemClock), log: silent, agents },
      ...{ leaseTtl: 300, sweepEvery: 20 },
    })
  const first = make({ ...store, renew: () => new Promise(() => {}) })
  const firstServed = first.serve()
  const { runId } = await first.start(caller, 'c', { messages: [userText('m', 'go')], agent })
  await vi.waitFor(() => expect(far.runs).toHaveLength(1), { timeout: 10_000 })
  const second = make(store)
  const { state } = await second.open(caller, 'c')
  const secondServed = second.serve()
  const ended = async () => {
    await second.open(caller, 'c')
    expect(state.runs.get(runId)?.status).toMatch(/failed|completed|waiting/)
  }
  await vi.waitFor(ended, { timeout: 40_000, interval: 20 })
  await Promise.all([first.stop(0), second.stop(0), firstServed, secondServed])
  return { status: state.runs.get(runId)?.status, effects: [...state.effects.values()] }
}

describe('a LangGraph run that is found after a crash', () => {
  const model = scriptedModel(() => [])
  const flow = workflow({
    name: 'flow',
    steps: [{ agent: 'graph', outputKey: 'a', retry: { attempts: 3, first: 1 } }],
  })
  const agentsOf = ({ url: deploymentUrl }: LangGraphRemote) => [
    { agent: langGraphPlatform({ deploymentUrl, agents: ['graph'], private: true })[0]!, model },
    { agent: flow, model },
  ]
  const refuse = (response: ServerResponse, status: number | 'reset') =>
    status === 'reset' ? response.destroy() : response.writeHead(status).end('later')

  test.each([
    ['graph', 429],
    ['flow', 429],
    ['graph', 'reset'],
    ['graph', 500],
  ] as const)(
    'a LangGraph run found after a crash is rejoined by %s although one lookup fails with %s, and is not started again (I4)',
    async (agent, status) => {
      const far = await langGraphRemote({
        isSilent: true,
        intercept(kind, response, { requests }) {
          if (kind !== 'list' || requests('list').length !== 2) return false
          refuse(response, status)
          return true
        },
      })
      const { effects } = await takenOver(far, agentsOf(far), agent)
      expect(far.requests('start')).toHaveLength(1)
      expect(effects.map((one) => [one.intent.attempt, one.state])).toEqual([[1, 'done']])
    },
    60_000,
  )

  test.each(['graph', 'flow'])(
    'a LangGraph run found after a crash is not started again by %s if all later lookups fail (I4)',
    async (agent) => {
      const far = await langGraphRemote({
        isSilent: true,
        intercept(kind, response, { requests }) {
          if (kind !== 'list' || requests('list').length < 2) return false
          refuse(response, 429)
          return true
        },
      })
      const { status, effects } = await takenOver(far, agentsOf(far), agent)
      expect(far.requests('start')).toHaveLength(1)
      expect(status).toBe('failed')
      expect(effects).toHaveLength(1)
      expect(effects[0]).toMatchObject({ error: { code: 'remote_cut', retryable: false } })
    },
    60_000,
  )
})

test('a LangGraph run that is found after a crash and has vanished when it is rejoined is not started again', async () => {
  const store = memoryStore({ clock: systemClock })
  let begun = 0
  let listed = 0
  let label: unknown
  const { url } = await remote((request, response) => {
    const { url: path = '', method } = request
    const json = (value: unknown) => {
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value))
    }
    if (path.endsWith('/runs/stream'))
      begun++ // and never answers
    else if (method === 'GET' && path.includes('/runs?'))
      json(++listed === 1 ? [{ run_id: 'r', metadata: { handrail_effect: label } }] : [])
    else json({ thread_id: 't' })
  })
  const [agent] = langGraphPlatform({ deploymentUrl: url, agents: ['graph'] })
  const agents = [{ agent: agent!, model: scriptedModel(() => []) }]
  const around = { bus: localBus(), queue: localQueue(systemClock), log: silent, agents }
  const more = { ...around, leaseTtl: 300, sweepEvery: 20 }
  const frozen: Store = { ...store, renew: () => new Promise(() => {}) }
  const first = createRuntime({ ...more, store: frozen })
  const firstServed = first.serve()
  const { runId } = await first.start(caller, 'c', { messages: [userText('m', 'go')] })
  await vi.waitFor(() => expect(begun).toBe(1), { timeout: 10_000 })
  const second = createRuntime({ ...more, store, bus: localBus(), queue: localQueue(systemClock) })
  const { state } = await second.open(caller, 'c')
  label = `${[...state.effects.keys()][0]}/1`
  const secondServed = second.serve()
  await vi.waitFor(
    async () => {
      await second.open(caller, 'c')
      expect(state.runs.get(runId)?.status).toBe('failed')
    },
    { timeout: 10_000, interval: 20 },
  )
  expect(listed).toBe(2)
  expect(begun).toBe(1)
  await Promise.all([first.stop(0), second.stop(0), firstServed, secondServed])
}, 20_000)
