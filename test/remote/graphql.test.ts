import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { aguiAgent } from '../../src/agents/remote/agui/agent.ts'
import { langGraphPlatform } from '../../src/agents/remote/langgraph-platform/agents.ts'
import { openPage, succeeded } from '../clients/graphql/support.ts'
import { serve } from '../support/serve.ts'
import { type LangGraphServer, startLangGraph } from './langgraph.ts'
import {
  answersTo,
  approvedOnce,
  asksOnce,
  finished,
  remote,
  sse,
  started,
  textEvents,
} from './support.ts'

vi.setConfig({ testTimeout: 120_000 })

describe('CopilotKit’s GraphQL client, and an AG-UI agent elsewhere', () => {
  test('talk, and go on with the same thread there', async () => {
    const far = await remote(({ body }, response) => {
      const { length } = body.messages
      sse(response, [started, ...textEvents(`m${length}`, 'It is ', `sunny ${length}.`), finished])
    })
    const server = await serve({ agents: [aguiAgent({ name: 'far', url: `${far.url}/run` })] })
    const page = openPage(server.url, { agent: 'far' })
    succeeded(await page.say('How is the weather?'))
    expect(page.shown().at(-1)).toBe('assistant: It is sunny 1.')
    succeeded(await page.say('And tomorrow?'))
    expect(page.shown().at(-1)).toBe('assistant: It is sunny 3.')
    expect(page.errors).toEqual([])
    expect(far.asked[1]!.body.threadId).toBe(far.asked[0]!.body.threadId)
  })

  test('its question is an interrupt of the page, and the answer goes back', async () => {
    const far = await asksOnce()
    const server = await serve({ agents: [aguiAgent({ name: 'far', url: `${far.url}/run` })] })
    const page = openPage(server.url, { agent: 'far' })
    succeeded(await page.say('go'))
    expect(page.interrupt!.value).toMatchObject({ title: 'Sure?' })
    succeeded(await page.resolve({ approved: true }))
    expect(page.shown().at(-1)).toBe('assistant: Done.')
    expect(answersTo(far)).toEqual(approvedOnce)
  })

  test('one that fails is told as such, and the next message finds it well', async () => {
    const far = await remote((_, response) => {
      if (far.asked.length > 1) sse(response, [started, ...textEvents('m2', 'Well.'), finished])
      else response.writeHead(500).end('out of order')
    })
    const server = await serve({ agents: [aguiAgent({ name: 'far', url: `${far.url}/run` })] })
    const page = openPage(server.url, { agent: 'far' })
    const { error, last } = await page.say('go')
    expect(JSON.stringify([error, last])).toContain('out of order')
    succeeded(await page.say('again'))
    expect(page.shown().at(-1)).toBe('assistant: Well.')
  })
})

describe('CopilotKit’s GraphQL client, and a real LangGraph server', () => {
  let far: LangGraphServer
  beforeAll(async () => {
    far = await startLangGraph()
  }, 120_000)
  afterAll(() => far?.close())

  test('talk, stop at its interrupt, and go on with the answer', async () => {
    const agents = langGraphPlatform({ deploymentUrl: far.url, agents: ['clerk'] })
    const server = await serve({ agents })
    const page = openPage(server.url, { agent: 'clerk' })
    succeeded(await page.say('hello'))
    expect(page.shown().at(-1)).toBe('assistant: You said 1: hello')
    succeeded(await page.say('ask for it'))
    expect(page.interrupt).toBeDefined()
    succeeded(await page.resolve('certainly'))
    expect(page.shown().at(-1)).toBe('assistant: You answered "certainly".')
    expect(page.errors).toEqual([])
    expect(far.marks()).toEqual(['confirmed "certainly"'])
  })
})
