import { fileURLToPath } from 'node:url'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { governed, governedTools, langgraph } from '../../src/index.ts'
import { serve } from '../support/serve.ts'
import { startServer, temporaryDirectory } from '../support/server.ts'
import { answerTo, tripGraph } from '../support/trip.mjs'
import { type Client, clients, finished, interruptsOf } from './support.ts'

// A server that starts twice takes its time on a busy machine.
vi.setConfig({ testTimeout: 120_000 })

const config = fileURLToPath(new URL('../support/trip.config.mjs', import.meta.url))

/** The server with the graph in this process, and what it paid. */
async function trip() {
  const paid: number[] = []
  const made = tripGraph({ governed, governedTools }, { paid: ({ n }) => paid.push(n) })
  const agent = langgraph(made.graph, { name: 'trip', tools: made.tools })
  const policy = [{ tool: 'pay', decision: 'allow' as const }]
  return { paid, server: await serve({ agents: [agent], builtIns: false, policy }) }
}

const words: Record<string, string> = { 'Which colour?': 'red', 'Which size?': 'big' }

/** Answers to all that is asked, together, as the client must. */
const resume = (client: Client) =>
  client.agent.pendingInterrupts.map(({ id, message = '' }) => {
    return { interruptId: id, status: 'resolved' as const, payload: words[message] }
  })

/** What is shown of one round, without the calls that the page knows nothing of. */
const round = (text: string) => [
  `user: ${text}`,
  `assistant: ${answerTo(text)}`,
  `assistant: ${answerTo(`big and red, paid ${text.slice(-1)}`)}`,
]
const spoken = (client: Client) =>
  client.shown().filter((line) => /^(user|assistant): \S/.test(line))
const said = (client: Client) => spoken(client).filter((line) => !line.includes('pay('))

describe.for(clients)('a graph, on $name', ({ open }) => {
  test('asks two things at once, and goes on with both answers', async () => {
    const { server, paid } = await trip()
    const client = await open(server.url, 't')
    const stream = await client.say('trip #1')
    const questions = interruptsOf(stream).map(({ message }) => message)
    expect(questions.sort()).toEqual(['Which colour?', 'Which size?'])
    const steps = stream.events.filter(({ type }) => type === 'STEP_STARTED')
    expect(steps.map(({ stepName }) => stepName).sort()).toEqual(['colour', 'pay', 'plan', 'size'])
    finished(await client.run({ resume: resume(client) }))
    expect(said(client)).toEqual(round('trip #1'))
    expect(client.agent.state).toMatchObject({ paid: 'paid 1' })
    expect(paid).toEqual([1])
    const fresh = await open(server.url, 't')
    await fresh.connect()
    expect(fresh.shown()).toEqual(client.shown())
    expect(fresh.agent.state).toEqual(client.agent.state)
  })

  test('keeps its questions when the server is killed, and pays once', async () => {
    const { path, remove } = await temporaryDirectory()
    onTestFinished(remove)
    const env = { HANDRAIL_CONFIG: config, HANDRAIL_DATA: path, CRASH_OUTSIDE: `${path}/outside` }
    const first = await startServer({ ...env, HANDRAIL_LEASE_MS: '300' })
    onTestFinished(() => first.kill())
    await (await open(first.url, 't')).say('trip #2')
    await first.kill()
    const second = await startServer({ ...env, HANDRAIL_LEASE_MS: '300' })
    onTestFinished(() => second.kill())
    const client = await open(second.url, 't')
    await client.connect()
    expect(client.agent.pendingInterrupts.length).toBe(2)
    finished(await client.run({ resume: resume(client) }))
    expect(said(client)).toEqual(round('trip #2'))
    const { readFile } = await import('node:fs/promises')
    expect((await readFile(`${path}/outside`, 'utf8')).trim().split('\n').length).toBe(1)
  })

  test('an edit goes on from the checkpoint before the message it replaces', async () => {
    const { server, paid } = await trip()
    const client = await open(server.url, 't')
    for (const text of ['trip #1', 'trip #2']) {
      await client.say(text)
      finished(await client.run({ resume: resume(client) }))
    }
    expect((client.agent.state as { chosen: string[] }).chosen.length).toBe(4)
    const second = client.agent.messages.filter(({ role }) => role === 'user')[1]!
    const at = client.agent.messages.findIndex(({ id }) => id === second.id)
    client.agent.setMessages(client.agent.messages.slice(0, at))
    const forwardedProps = { handrail: { branchFrom: second.id } }
    await client.say('trip #3', { forwardedProps })
    finished(await client.run({ resume: resume(client) }))
    expect(said(client)).toEqual([...round('trip #1'), ...round('trip #3')])
    expect((client.agent.state as { chosen: string[] }).chosen.length).toBe(4)
    expect(paid).toEqual([1, 2, 3])
  })
})
