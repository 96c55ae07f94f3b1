import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { chatsClient } from '../support/chats.ts'
import { langGraphRemote } from '../support/langgraph-remote.ts'
import { type ServerProcess, startServer, temporaryDirectory } from '../support/server.ts'
import { find, names } from '../support/tools.ts'
import { type LangGraphServer, startLangGraph } from './langgraph.ts'
import {
  answersTo,
  approvedOnce,
  asksOnce,
  finished,
  interactionOf,
  remote,
  sse,
  started,
  textEvents,
} from './support.ts'

/** A server in a process of its own, and the next one on the same data. */
async function lives(env: Record<string, string>) {
  const directory = await temporaryDirectory()
  let life: ServerProcess | undefined
  onTestFinished(async () => {
    await life?.kill()
    await directory.remove()
  })
  return async () => {
    life = await startServer({
      HANDRAIL_DATA: directory.path,
      HANDRAIL_SPOOL: `${directory.path}/spool`,
      HANDRAIL_CONFIG: new URL('./handrail.config.mjs', import.meta.url).pathname,
      HANDRAIL_LEASE_MS: '1000',
      ...env,
    })
    return { ...chatsClient(life.url), kill: life.kill }
  }
}

describe('our server is killed', () => {
  test('between the question of an AG-UI agent and the answer: the answer goes back all the same', async () => {
    const far = await asksOnce()
    const begin = await lives({ TEST_AGUI: `${far.url}/run` })
    const first = await begin()
    const stream = await first.start('c', 'go')
    const { approval_id } = find(await stream.until('approval_required'), 'approval_required')
    const run = interactionOf(stream.response)
    await first.kill()
    const second = await begin()
    expect((await second.approve('c', run, { approval_id, approved: true })).status).toBe(200)
    const frames = await (await second.join('c', run)).rest()
    expect(frames.findLast(({ event }) => event === 'answer')?.data.content).toBe('Done.')
    expect(answersTo(far)).toEqual(approvedOnce)
    expect(far.asked[1]!.body.threadId).toBe(far.asked[0]!.body.threadId)
  }, 120_000)

  test.each([
    ['happened', { outcome: 'happened', result: 'It was done.' }, 1, 'It was done.'],
    ['did not happen', { outcome: 'did_not' }, 2, 'Whole.'],
    ['is not known', { outcome: 'skip' }, 1, undefined],
  ])(
    'in the middle of a leg: a person is asked, and says that it %s (I4)',
    async (_, answer, times, said) => {
      const far = await remote((_asked, response) =>
        far.asked.length === 1
          ? sse(response, [started, ...textEvents('m1', 'Half').slice(0, 2)], false)
          : sse(response, [started, ...textEvents('m2', 'Whole.'), finished]),
      )
      const begin = await lives({ TEST_AGUI: `${far.url}/run` })
      const first = await begin()
      const stream = await first.start('c', 'go')
      await stream.until('answer_delta')
      const run = interactionOf(stream.response)
      await first.kill()
      const second = await begin()
      const joined = await second.join('c', run)
      const { approval_id, kind, card } = find(
        await joined.until('approval_required'),
        'approval_required',
      )
      expect([kind, card.title]).toEqual(['in_doubt', 'Did this happen? far answers “go”'])
      expect(far.asked).toHaveLength(1)
      await second.approve('c', run, { approval_id, ...answer })
      const frames = await joined.rest()
      expect(frames.findLast(({ event }) => event === 'answer')?.data.content).toBe(said)
      expect(far.asked).toHaveLength(times)
      if (said === undefined) expect(find(frames, 'error').code).toBe('remote_cut')
    },
    60_000,
  )

  test('in the middle of a leg that is a step of a workflow: who is asked is told which', async () => {
    const far = await remote((_, response) =>
      sse(response, [started, ...textEvents('m1', 'Half').slice(0, 2)], false),
    )
    const begin = await lives({ TEST_AGUI: `${far.url}/run`, TEST_STEP: 'far_output' })
    const first = await begin()
    const stream = await first.start('c', 'go')
    await stream.until('answer_delta')
    const run = interactionOf(stream.response)
    await first.kill()
    const second = await begin()
    const joined = await second.join('c', run)
    const { approval_id, kind, card } = find(
      await joined.until('approval_required'),
      'approval_required',
    )
    expect([kind, card.agent, card.path]).toEqual(['in_doubt', 'far', 'far_output'])
    await second.approve('c', run, { approval_id, outcome: 'happened', result: 'It was done.' })
    const frames = await joined.rest()
    expect(find(frames, 'agent_completed')).toMatchObject({ agent: 'far', output: 'It was done.' })
    expect(find(frames, 'interaction_complete').status).toBe('COMPLETED')
    expect(far.asked).toHaveLength(1)
  }, 120_000)

  test('in the middle of a leg that may be run twice: it is', async () => {
    const far = await remote((_asked, response) =>
      far.asked.length === 1
        ? sse(response, [started, ...textEvents('m1', 'Half').slice(0, 2)], false)
        : sse(response, [started, ...textEvents('m2', 'Whole.'), finished]),
    )
    const begin = await lives({ TEST_AGUI: `${far.url}/run`, TEST_IDEMPOTENT: 'yes' })
    const first = await begin()
    const stream = await first.start('c', 'go')
    await stream.until('answer_delta')
    const run = interactionOf(stream.response)
    await first.kill()
    const second = await begin()
    const frames = await (await second.join('c', run)).rest()
    expect(names(frames)).not.toContain('approval_required')
    expect(find(frames, 'answer').content).toBe('Whole.')
    const [one, two] = far.asked
    expect(two!.headers['idempotency-key']).toBe(one!.headers['idempotency-key'])
  }, 120_000)

  test.each([
    ['a direct run', {}],
    ['a workflow step with retry', { TEST_RETRIED: 'clerk' }],
  ])(
    'a LangGraph run of %s is started once if the server is killed and a lookup then gets 429 (I4)',
    async (_, env) => {
      const far = await langGraphRemote({
        isSilent: true,
        intercept(kind, response, { requests }) {
          if (kind !== 'list' || requests('list').length !== 2) return false
          response.writeHead(429).end()
          return true
        },
      })
      const begin = await lives({ TEST_LANGGRAPH: far.url, ...env })
      const first = await begin()
      const stream = await first.start('c', 'go')
      await expect.poll(() => far.runs).toHaveLength(1)
      const run = interactionOf(stream.response)
      await first.kill()
      const second = await begin()
      const frames = await (await second.join('c', run)).rest()
      expect(find(frames, 'interaction_complete').status).toBe('COMPLETED')
      expect(far.runs).toHaveLength(1)
      expect(far.requests('list').length).toBeGreaterThan(2)
    },
    60_000,
  )
})

describe('our server is killed, and a real LangGraph server goes on', () => {
  let far: LangGraphServer
  beforeAll(async () => {
    far = await startLangGraph()
  }, 120_000)
  afterAll(() => far?.close())

  test('in the middle of a run: it is joined again by its id, and nothing is done twice', async () => {
    const begin = await lives({ TEST_LANGGRAPH: far.url })
    const first = await begin()
    const stream = await first.start('c', 'slow 5000')
    await expect.poll(() => far.marks(), { timeout: 20_000 }).toContain('slow began')
    const run = interactionOf(stream.response)
    await first.kill()
    const second = await begin()
    const frames = await (await second.join('c', run)).rest()
    expect(find(frames, 'answer').content).toBe('Slowly done.')
    expect(far.marks()).toEqual(['slow began', 'slow ended'])
  }, 120_000)

  test('between its interrupt and the answer', async () => {
    const begin = await lives({ TEST_LANGGRAPH: far.url })
    const first = await begin()
    const stream = await first.start('c', 'ask for it')
    const { approval_id } = find(await stream.until('approval_required'), 'approval_required')
    const run = interactionOf(stream.response)
    await first.kill()
    const second = await begin()
    await second.approve('c', run, { approval_id, answer: 'yes' })
    const frames = await (await second.join('c', run)).rest()
    expect(frames.findLast(({ event }) => event === 'answer')?.data.content).toBe(
      'You answered "yes".',
    )
    expect(far.marks().filter((one) => one === 'confirmed "yes"')).toHaveLength(1)
  }, 120_000)

  test('the graph’s own server too is killed between its interrupt and the answer', async () => {
    const begin = await lives({ TEST_LANGGRAPH: far.url })
    const server = await begin()
    const stream = await server.start('c', 'ask once more')
    const { approval_id } = find(await stream.until('approval_required'), 'approval_required')
    const run = interactionOf(stream.response)
    await far.kill()
    let back = false
    onTestFinished(async () => {
      if (!back) await far.restart()
    })
    await server.approve('c', run, { approval_id, answer: 'later' })
    const frames = await stream.rest()
    expect(find(frames, 'error').code).toBe('remote_unavailable')
    await far.restart()
    back = true
    // In development it may have forgotten the thread: then it says so, and the chat goes on.
    const again = await (await server.open('POST', `/chats/c/interactions/${run}/retry`)).rest()
    expect(['COMPLETED', 'FAILED']).toContain(find(again, 'interaction_complete').status)
    const next = await (await server.start('d', 'hello')).rest()
    expect(find(next, 'answer').content).toBe('You said 1: hello')
  }, 120_000)
})
