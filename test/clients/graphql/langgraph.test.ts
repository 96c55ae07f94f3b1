import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test, vi } from 'vitest'
import { governed, governedTools, langgraph } from '../../../src/index.ts'
import { serve } from '../../support/serve.ts'
import { startServer, temporaryDirectory } from '../../support/server.ts'
import { answerTo, tripGraph } from '../../support/trip.mjs'
import { openPage, type Page, succeeded } from './support.ts'

// A server that starts twice takes its time on a busy machine.
vi.setConfig({ testTimeout: 120_000 })

const config = fileURLToPath(new URL('../../support/trip.config.mjs', import.meta.url))

const words: Record<string, string> = { 'Which colour?': 'red', 'Which size?': 'big' }

/** One question at a time, as this client has it. */
async function answerBoth(page: Page) {
  const asked: string[] = []
  while (page.interrupt) {
    const { question } = page.interrupt.value as { question: string }
    asked.push(question)
    succeeded(await page.resolve(words[question]))
  }
  return asked.sort()
}

const told = (n: number) => `assistant: ${answerTo(`big and red, paid ${n}`)}`

test('a graph asks the client one thing after the other, and tells its state', async () => {
  const made = tripGraph({ governed, governedTools })
  const agents = [langgraph(made.graph, { name: 'trip', tools: made.tools })]
  const policy = [{ tool: 'pay', decision: 'allow' as const }]
  const server = await serve({ agents, builtIns: false, policy })
  const page = openPage(server.url, { agent: 'trip' })
  const heard = await page.say('trip #1')
  succeeded(heard)
  const nodes = heard.last.messages.map(({ nodeName }: { nodeName?: string }) => nodeName)
  expect(nodes).toContain('plan')
  expect(await answerBoth(page)).toEqual(['Which colour?', 'Which size?'])
  expect(page.shown().at(-1)).toBe(told(1))
  expect(page.errors).toEqual([])
})

test('killed while it waits, a graph is found by the page and goes on', async () => {
  const { path, remove } = await temporaryDirectory()
  onTestFinished(remove)
  const env = { HANDRAIL_CONFIG: config, HANDRAIL_DATA: path, HANDRAIL_LEASE_MS: '300' }
  const first = await startServer(env)
  onTestFinished(() => first.kill())
  const page = openPage(first.url, { agent: 'trip' })
  succeeded(await page.say('trip #2'))
  await first.kill()
  const second = await startServer(env)
  onTestFinished(() => second.kill())
  const fresh = openPage(second.url, { agent: 'trip' })
  const loaded = await fresh.load()
  expect(loaded).toMatchObject({ exists: true, state: { paid: 'paid 2' } })
  succeeded(await fresh.complete())
  await answerBoth(fresh)
  expect(fresh.shown().at(-1)).toBe(told(2))
  const { state } = await fresh.load()
  expect((state as { chosen: string[] }).chosen.sort()).toEqual(['big', 'red'])
})
