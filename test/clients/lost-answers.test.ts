import { expect, test } from 'vitest'
import { call, scriptedModel, text } from '../../src/models/scripted.ts'
import { gate } from '../support/gate.ts'
import { serve } from '../support/serve.ts'
import { said } from '../support/tools.ts'
import { type Client, httpClient, toolMessage } from './support.ts'

const paint = { name: 'paint', description: 'Paints', parameters: { type: 'object' } }

/** One run at a time: while `busy` stands at the gate, whatever else is accepted waits its turn. */
async function slowServer() {
  const stands = gate()
  const model = scriptedModel(async function* (request, _n, signal) {
    const words = said(request)
    if (words.at(-1) === 'user: busy') await stands.pass(signal)
    if (words.at(-1) === 'user: make it teal') yield call('1', 'paint', { color: 'teal' })
    else yield text('Nice.')
  })
  const server = await serve({ model, builtIns: false }, { env: { HANDRAIL_MAX_LEGS: '1' } })
  return { server, stands }
}

const shown = [
  ...['user: make it teal', 'assistant: paint({"color":"teal"})'],
  ...['tool: done', 'assistant: Nice.'],
]

test.for([
  ['connects', (page: Client) => page.connect()],
  ['sends it again', (page: Client) => page.run({ runId: 'result', tools: [paint] })],
] as const)(
  'a result whose answer was lost, by a page that %s: it is in its place',
  async ([, comeBack]) => {
    const { server, stands } = await slowServer()
    const page = httpClient(server.url, 't')
    await page.say('make it teal', { tools: [paint] })
    const busy = httpClient(server.url, 'busy').say('busy')
    await stands.reached
    page.agent.addMessage({ ...toolMessage('1', 'done'), id: 'done' })
    const sent = page.run({ runId: 'result', tools: [paint] }).catch(() => undefined)
    await server.recorded('t', 'ask.answered')
    page.agent.abortRun()
    await sent
    page.agent.abortController = new AbortController() // or it would abort the next one too
    const before = page.streams.length
    const back = comeBack(page)
    while (!page.streams[before]?.events.some(({ type }) => type === 'MESSAGES_SNAPSHOT'))
      await new Promise((resolve) => setImmediate(resolve))
    stands.open()
    await Promise.all([busy, back])
    expect(page.shown()).toEqual(shown)
    await page.connect()
    expect(page.shown()).toEqual(shown)
  },
)
