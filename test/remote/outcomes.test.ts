import type { ServerResponse } from 'node:http'
import { describe, expect, test } from 'vitest'
import { aguiAgent } from '../../src/agents/remote/agui/agent.ts'
import { langGraphPlatform } from '../../src/agents/remote/langgraph-platform/agents.ts'
import { workflow } from '../../src/agents/workflow/agent.ts'
import type { Agent } from '../../src/core/agent.ts'
import { scriptedModel } from '../../src/models/scripted.ts'
import {
  type LangGraphRemote,
  type LangGraphRequest,
  langGraphRemote,
} from '../support/langgraph-remote.ts'
import { serve } from '../support/serve.ts'
import { find, names } from '../support/tools.ts'
import { ask, finished, interactionOf, remote, sse, started, textEvents } from './support.ts'

/** Statuses after which nobody knows whether the remote did the work. */
const unknown = [408, 500, 502, 503, 504]
/** Statuses that say that the work did not start. */
const refused = [425, 429]

const done = (response: ServerResponse) =>
  sse(response, [started, ...textEvents('m1', 'Done.'), finished])

/** An AG-UI agent that counts its executions and answers the first one with this status. */
const answersOnce = (status: number) =>
  remote((_, response) => {
    response.setHeader('retry-after', '0')
    if (far.asked.length === 1) response.writeHead(status).end('upstream')
    else done(response)
  }).then((made) => {
    far = made
    return made
  })
let far: Awaited<ReturnType<typeof remote>>

describe('an AG-UI agent', () => {
  test.each(unknown)('that answers %i is executed once (I4)', async (status) => {
    const { url, asked } = await answersOnce(status)
    const server = await serve({ agents: [aguiAgent({ name: 'far', url: `${url}/run` })] })
    const frames = await ask(server, 'c', 'go')
    expect(asked).toHaveLength(1)
    const code = status === 500 ? 'remote_failed' : 'remote_outcome_unknown'
    expect(find(frames, 'error')).toMatchObject({ code, retryable: false })
    expect(find(frames, 'error').error).toContain(String(status))
    expect(names(frames)).not.toContain('retrying')
  })

  test.each(refused)('that answers %i is asked again: it did not start', async (status) => {
    const { url, asked } = await answersOnce(status)
    const server = await serve({ agents: [aguiAgent({ name: 'far', url: `${url}/run` })] })
    const frames = await ask(server, 'c', 'go')
    expect(asked).toHaveLength(2)
    expect(find(frames, 'retrying')).toMatchObject({ attempt: 2, code: 'remote_unavailable' })
    expect(find(frames, 'answer').content).toBe('Done.')
  })

  test.each(unknown.filter((status) => status !== 500))(
    'that is idempotent and answers %i is asked again',
    async (status) => {
      const { url, asked } = await answersOnce(status)
      const agent = aguiAgent({ name: 'far', url: `${url}/run`, idempotent: true })
      const server = await serve({ agents: [agent] })
      const frames = await ask(server, 'c', 'go')
      expect(find(frames, 'answer').content).toBe('Done.')
      expect(asked).toHaveLength(2)
    },
  )

  test('that redirects the request and is gone then is not asked again', async () => {
    const far = await remote((_, response) => {
      response.writeHead(307, { location: '/elsewhere', connection: 'close' }).end()
      void far.close()
    })
    const server = await serve({ agents: [aguiAgent({ name: 'far', url: `${far.url}/run` })] })
    const frames = await ask(server, 'c', 'go')
    expect(find(frames, 'error')).toMatchObject({ code: 'remote_cut', retryable: false })
    expect(names(frames)).not.toContain('retrying')
  })

  test.each([
    ['302', 302, '/elsewhere'],
    ['303', 303, '/elsewhere'],
    ['307 to another origin', 307, 'http://127.0.0.1:1/run'],
  ])(
    'an AG-UI agent that redirects with %s is executed once, idempotent or not (I4)',
    async (_, status, location) => {
      for (const idempotent of [false, true]) {
        const { url, asked } = await remote((_, response) => {
          response.writeHead(status, { location }).end()
        })
        const agent = aguiAgent({ name: 'far', url: `${url}/run`, idempotent })
        const frames = await ask(await serve({ agents: [agent] }), 'c', 'go')
        expect(find(frames, 'error').code).toBe('remote_outcome_unknown')
        expect(names(frames)).not.toContain('retrying')
        expect(asked).toHaveLength(1)
      }
    },
  )

  test('whose outcome is unknown is executed again when a person retries the run', async () => {
    const { url, asked } = await answersOnce(503)
    const server = await serve({ agents: [aguiAgent({ name: 'far', url: `${url}/run` })] })
    const stream = await server.start('c', 'go')
    await stream.rest()
    expect(asked).toHaveLength(1)
    const run = interactionOf(stream.response)
    const again = await server.open('POST', `/chats/c/interactions/${run}/retry`)
    expect(find(await again.rest(), 'answer').content).toBe('Done.')
    expect(asked).toHaveLength(2)
  })
})

describe('a workflow step with retry', () => {
  const flowOf = (agent: Agent) =>
    workflow({
      name: 'flow',
      steps: [{ agent, outputKey: 'a', retry: { attempts: 3, first: 1 } }],
    })

  test.each(unknown)('does not repeat a remote agent that answered %i', async (status) => {
    const { url, asked } = await answersOnce(status)
    const flow = flowOf(aguiAgent({ name: 'far', url: `${url}/run` }))
    const server = await serve({ agents: [flow] })
    const frames = await ask(server, 'c', 'go')
    expect(frames.at(-1)!.data.status).toBe('FAILED')
    expect(asked).toHaveLength(1)
  })

  test('does not repeat a remote agent whose connection was lost', async () => {
    const cut = await remote((_, response) => void response.destroy())
    const flow = flowOf(aguiAgent({ name: 'far', url: `${cut.url}/run` }))
    const server = await serve({ agents: [flow] })
    expect(find(await ask(server, 'c', 'go'), 'error').code).toBe('remote_cut')
    expect(cut.asked).toHaveLength(1)
  })

  test('does not repeat a remote agent that was silent for too long', async () => {
    const silent = await remote(() => {})
    const timeouts = { silence: 200 }
    const flow = flowOf(aguiAgent({ name: 'far', url: `${silent.url}/run`, timeouts }))
    const server = await serve({ agents: [flow] })
    expect(find(await ask(server, 'c', 'go'), 'error').code).toBe('remote_timeout')
    expect(silent.asked).toHaveLength(1)
  })

  test('repeats a remote agent that refused to start', async () => {
    const { url, asked } = await answersOnce(429)
    const flow = flowOf(aguiAgent({ name: 'far', url: `${url}/run`, attempts: 1 }))
    const server = await serve({ agents: [flow] })
    const frames = await ask(server, 'c', 'go')
    expect(frames.at(-1)!.data.status).toBe('COMPLETED')
    expect(asked).toHaveLength(2)
  })

  test('repeats an idempotent remote agent whose outcome is unknown', async () => {
    const { url, asked } = await answersOnce(503)
    const far = aguiAgent({ name: 'far', url: `${url}/run`, attempts: 1, idempotent: true })
    const server = await serve({ agents: [flowOf(far)] })
    const frames = await ask(server, 'c', 'go')
    expect(frames.at(-1)!.data.status).toBe('COMPLETED')
    expect(asked).toHaveLength(2)
  })

  test('does not repeat a remote leg whose agent reports the failure as its own', async () => {
    const { url, asked } = await answersOnce(503)
    const inner = aguiAgent({ name: 'far', url: `${url}/run` })
    const wrapping: Agent = {
      name: 'wrapping',
      async *run(ctx) {
        try {
          yield* inner.run(ctx)
        } catch {
          throw new Error('It did not work.')
        }
      },
    }
    const server = await serve({ agents: [flowOf(wrapping)] })
    const frames = await ask(server, 'c', 'go')
    expect(frames.at(-1)!.data.status).toBe('FAILED')
    expect(asked).toHaveLength(1)
  })
})

describe("an endpoint of CopilotKit's Python SDK", () => {
  const info = {
    agents: [{ name: 'graph' }],
    actions: [{ name: 'greet', description: 'Greets', parameters: [{ name: 'who' }] }],
  }
  const json = (response: ServerResponse, value: unknown) => {
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(`${JSON.stringify(value)}\n`)
  }
  const endpoint = async (status: number, headers = {}) => {
    const executed: string[] = []
    const { url } = await remote(({ path }, response) => {
      if (path.endsWith('/info')) return json(response, info)
      if (!path.endsWith('/execute')) return void response.writeHead(404).end()
      executed.push(path)
      if (executed.length === 1) return void response.writeHead(status, headers).end('upstream')
      if (path.endsWith('actions/execute')) return json(response, { result: 'Hello!' })
      json(response, { type: 'TextMessageStart', messageId: 'm' })
    })
    const timeouts = { total: 1_000 } // for how long the work may still be going on
    return { remote: [{ url: `${url}/copilotkit`, timeouts }], executed }
  }

  test.each(unknown)('has its agent executed once after status %i (I4)', async (status) => {
    const { remote, executed } = await endpoint(status)
    const server = await serve({ remote })
    const start = { user_message: 'go', agent: 'graph' }
    const frames = await (await server.open('POST', '/chats/c/interactions', start)).rest()
    expect(executed).toHaveLength(1)
    const code = status === 500 ? 'remote_failed' : 'remote_outcome_unknown'
    expect(find(frames, 'error')).toMatchObject({ code, retryable: false })
  })

  const elsewhere = { location: 'http://127.0.0.1:1/done' }
  const redirects: [number, string, object][] = [
    [302, ' within the origin', { location: '/done' }],
    [303, ' within the origin', { location: '/done' }],
    [303, ' to another origin', elsewhere],
    [307, ' to another origin', elsewhere],
    [302, ' without a location', {}],
  ]

  test.each(redirects)(
    'the agent of a CopilotKit endpoint is executed once after redirect %i%s (I4)',
    async (status, _, headers) => {
      const { remote, executed } = await endpoint(status, headers)
      const server = await serve({ remote })
      const start = { user_message: 'go', agent: 'graph' }
      const frames = await (await server.open('POST', '/chats/c/interactions', start)).rest()
      expect(executed).toHaveLength(1)
      expect(find(frames, 'error')).toMatchObject({
        code: 'remote_outcome_unknown',
        retryable: false,
      })
    },
  )

  test.each([
    ...[408, 502, 503, 504].map((status): [number, string, object] => [status, '', {}]),
    ...redirects,
  ])(
    'an action of a CopilotKit endpoint is in doubt after status %i%s, and a person says whether it happened (I4)',
    async (status, _, headers) => {
      const { remote, executed } = await endpoint(status, headers)
      const model = scriptedModel(({ messages }) =>
        messages.at(-1)?.role === 'tool'
          ? [{ type: 'text', text: 'Greeted.' }]
          : [{ type: 'call', callId: 'k', name: 'greet', input: '{"who":"ann"}' }],
      )
      const policy = [{ tool: 'greet', decision: 'allow' as const }]
      const server = await serve({ remote, model, policy })
      const stream = await server.start('c', 'greet ann')
      const asked = find(await stream.until('approval_required'), 'approval_required')
      expect(asked).toMatchObject({ kind: 'in_doubt', tool_name: 'greet' })
      await server.approve('c', interactionOf(stream.response), {
        approval_id: asked.approval_id,
        outcome: 'happened',
      })
      expect(find(await stream.rest(), 'tool_result').tool_output).toBe('It was done.')
      expect(executed).toHaveLength(1)
    },
  )
})

describe('a LangGraph deployment', () => {
  /** Enough of its API to begin a run, and to lose it afterwards. */
  const deployment = async (answer: (path: string, response: ServerResponse) => boolean) => {
    const begun: string[] = []
    const { url } = await remote(({ method, path }, response) => {
      if (method === 'POST' && path.endsWith('/runs/stream')) begun.push(path)
      if (answer(path, response)) return
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(path.endsWith('/threads') ? '{"thread_id":"t"}' : '[]')
    })
    const steps = [{ agent: 'graph', outputKey: 'a', retry: { attempts: 3, first: 1 } }]
    const server = await serve({
      agents: [workflow({ name: 'flow', steps })],
      remote: [{ deploymentUrl: url, agents: ['graph'] }],
    })
    return { begun, server }
  }

  test.each([408, 502, 503, 504])('begins one run after status %i (I4)', async (status) => {
    const { begun, server } = await deployment((path, response) => {
      if (!path.endsWith('/runs/stream')) return false
      response.writeHead(status).end('upstream')
      return true
    })
    const frames = await ask(server, 'c', 'go')
    expect(find(frames, 'error').code).toBe('remote_outcome_unknown')
    expect(begun).toHaveLength(1)
  })

  test('that refuses requests after its run began is not asked to begin another', async () => {
    const { begun, server } = await deployment((path, response) => {
      if (path.endsWith('/runs/stream')) {
        const place = '/threads/t/runs/r1'
        response.writeHead(200, {
          'content-type': 'text/event-stream',
          'content-location': place,
        })
        response.end('event: metadata\ndata: {"run_id":"r1"}\n\n')
        return true
      }
      if (path.endsWith('/state')) response.writeHead(429).end('Too many requests')
      else if (path.endsWith('/runs/r1')) response.end('{"run_id":"r1","status":"success"}')
      else return false
      return true
    })
    const frames = await ask(server, 'c', 'go')
    expect(find(frames, 'error').code).toBe('remote_cut')
    expect(begun).toHaveLength(1)
  })

  const startsOf = (far: LangGraphRemote) => far.requests('start')
  const statusFor =
    (kind: LangGraphRequest, status: number, times = 1, headers = {}) =>
    (asked: LangGraphRequest, response: ServerResponse, far: LangGraphRemote) => {
      if (asked !== kind || far.requests(kind).length > times) return false
      response.writeHead(status, headers).end()
      return true
    }
  const agentOf = (far: LangGraphRemote, more = {}) =>
    langGraphPlatform({ deploymentUrl: far.url, agents: ['graph'], ...more })

  test.each(refused)(
    'a LangGraph deployment that answers %i to a start gets the start again, because no run started',
    async (status) => {
      const far = await langGraphRemote({ intercept: statusFor('start', status) })
      const frames = await ask(await serve({ agents: agentOf(far) }), 'c', 'go')
      expect(find(frames, 'retrying')).toMatchObject({ attempt: 2, code: 'remote_unavailable' })
      expect(find(frames, 'answer').content).toBe('The graph is done.')
      expect(startsOf(far)).toHaveLength(2)
      expect(far.runs).toHaveLength(1)
    },
  )

  test('a LangGraph deployment that answers 429 to every start gets as many requests as configured', async () => {
    const far = await langGraphRemote({ intercept: statusFor('start', 429, 9) })
    const server = await serve({ agents: agentOf(far, { attempts: 2 }) })
    const frames = await ask(server, 'c', 'go')
    expect(find(frames, 'error')).toMatchObject({ code: 'remote_unavailable', retryable: true })
    expect(startsOf(far)).toHaveLength(2)
  })

  test('an idempotent LangGraph deployment that answers 503 to a start gets the request again', async () => {
    const far = await langGraphRemote({ intercept: statusFor('start', 503) })
    const server = await serve({ agents: agentOf(far, { idempotent: true }) })
    expect(find(await ask(server, 'c', 'go'), 'answer').content).toBe('The graph is done.')
    expect(startsOf(far)).toHaveLength(2)
  })

  test('a start that a LangGraph deployment redirects is not repeated, because a run may have started (I4)', async () => {
    const intercept = statusFor('start', 303, 9, { location: '/done' })
    const far = await langGraphRemote({ intercept })
    const frames = await ask(await serve({ agents: agentOf(far) }), 'c', 'go')
    expect(find(frames, 'error')).toMatchObject({
      code: 'remote_outcome_unknown',
      retryable: false,
    })
    expect(startsOf(far)).toHaveLength(1)
  })

  test('a LangGraph deployment that redirects the creation of a thread is reported as a wrong URL', async () => {
    const intercept = statusFor('thread', 301, 9, { location: 'https://127.0.0.1:1/threads' })
    const far = await langGraphRemote({ intercept })
    const frames = await ask(await serve({ agents: agentOf(far) }), 'c', 'go')
    expect(find(frames, 'error')).toMatchObject({ code: 'remote_refused', retryable: false })
    expect(far.requests('thread')).toHaveLength(1)
  })
})
