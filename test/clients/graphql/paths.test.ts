import { stripIgnoredCharacters } from 'graphql'
import { expect, test } from 'vitest'
import type { Agent } from '../../../src/core/agent.ts'
import { RuntimeError } from '../../../src/core/errors.ts'
import { call, scriptedModel, text } from '../../../src/models/scripted.ts'
import { serve } from '../../support/serve.ts'
import { look, send, story } from '../../support/story.ts'
import { tools } from '../../support/tools.ts'
import {
  actionInput,
  dataOf,
  document,
  generate,
  openPage,
  textInput,
  typedDocument,
} from './support.ts'

/** The same by every path: a result must not depend on how it was asked for. */
const paths = [
  ['the clients’ own document, in parts', { query: typedDocument }],
  ['the same with a comment', { query: `# mine\n${typedDocument}` }],
  ['without types, in parts', { query: document }],
  ['as events', { query: typedDocument, headers: { accept: 'text/event-stream' } }],
  ['whole', { query: typedDocument, headers: { accept: 'application/json' } }],
  ['by another name', { query: typedDocument.replace('threadId', 'threadId again: threadId') }],
] as const

const painter: Agent = {
  name: 'painter',
  async *run(ctx) {
    yield { type: 'step', name: 'mix', done: false }
    yield { type: 'state', value: { color: 'teal' } }
    const parts = [{ type: 'text' as const, text: 'Mixed.' }]
    yield { type: 'message', message: { id: ctx.newId('msg'), role: 'assistant', parts } }
    yield { type: 'step', name: 'mix', done: true }
  },
}

const actions = { frontend: { actions: [actionInput({ name: 'paint' })] } }
const stories = {
  'a text': [[text('Hello '), text('wörld ✓')]],
  'a tool of ours': [[text('I look.'), look('1', 'sea')], [text('Blue.')]],
  'an action': [[text('I paint.'), call('c1', 'paint', { color: 'teal' })]],
  'a question': [[text('I pay.'), send('1')]],
  'a failure': [[text('Half '), new RuntimeError('model_request')]],
} as const

async function ask(plays: never, path: (typeof paths)[number][1], more: object) {
  const box = tools()
  const model = scriptedModel(plays)
  const settings = { model, tools: box.all, builtIns: false, retry: { attempts: 1 } }
  const server = await serve(more === actions ? settings : { agents: [painter], ...settings })
  const data = dataOf([textInput('go', 'u1')], { ...actions, ...more })
  const { json, response, status } = await generate(server.url, data, path)
  expect(status).toBe(200)
  return plain(json?.data.generateCopilotResponse ?? response)
}

/**
 * What is said, without what is made up anew each time, and without how it was cut. The executor
 * cannot write over what it gave, so what has failed may be there or not.
 */
function plain(response: Record<string, unknown>): unknown {
  const ids = new Map<string, string>()
  return JSON.parse(
    JSON.stringify(response, (key, value) => {
      if (key === '__typename' && !/Output$/.test(String(value))) return undefined
      if (['createdAt', 'again'].includes(key)) return undefined
      if (value?.status?.code === 'Failed' && value.content) return { ...value, content: [] }
      if (key === 'content' || key === 'arguments') return value.join('')
      if (['id', 'parentMessageId', 'runId'].includes(key) && typeof value === 'string') {
        if (!ids.has(value)) ids.set(value, `#${ids.size}`)
        return ids.get(value)
      }
      if (key === 'value') return { ...JSON.parse(value), askId: 'ask', deadline: 'then' }
      return value
    }),
  )
}

test('the document here is the one that the client sends', async () => {
  const server = await story([[text('Hi.')]])
  const page = openPage(server.url)
  await page.say('hi')
  const { query } = page.answers[0]!.request
  expect(stripIgnoredCharacters(typedDocument)).toBe(stripIgnoredCharacters(query))
})

test.for(Object.entries(stories))('%s is the same by every path', async ([, plays]) => {
  const [[, first], ...others] = paths
  const wanted = await ask(plays as never, first, actions)
  for (const [name, path] of others)
    expect(await ask(plays as never, path, actions), name).toEqual(wanted)
})

test('an agent with a state is the same by every path', async () => {
  const more = { agentSession: { agentName: 'painter' } }
  const [[, first], ...others] = paths
  const wanted = await ask([] as never, first, more)
  expect(wanted).toMatchObject({ status: { code: 'Success' } })
  for (const [name, path] of others)
    expect(await ask([] as never, path, more), name).toEqual(wanted)
})
