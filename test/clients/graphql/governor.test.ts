import { describe, expect, test } from 'vitest'
import { scriptedModel, text } from '../../../src/models/scripted.ts'
import { type Served, serve } from '../../support/serve.ts'
import { look } from '../../support/story.ts'
import { said, tools } from '../../support/tools.ts'
import {
  type Action,
  dataOf,
  generate,
  openPage,
  type Page,
  resultMessage,
  succeeded,
  textInput,
} from './support.ts'

const card: Action = { name: 'reconfigureHITL', description: 'A card' }
const on = (limit: number) => ({ HANDRAIL_HITL: 'on', HANDRAIL_ACTION_LIMIT: String(limit) })

/** Each message leads to three calls: two look something up, the third answers. */
async function start(env: Record<string, string>) {
  const box = tools()
  const model = scriptedModel((_, call) => {
    const step = call % 3
    return step < 2 ? [look(`look-${call}`, `place ${call}`)] : [text(`Answer ${call}.`)]
  })
  const server = await serve({ model, tools: box.all, builtIns: false }, { env })
  return { ...server, ...box, model }
}

const governor = async ({ request }: Served) => (await request('GET', '/threads/t/governor')).json()

function cardOf(page: Page) {
  const message = page.messages.findLast((one) => one.isActionExecutionMessage())
  if (!message?.isActionExecutionMessage()) throw new Error('there is no card')
  return message
}

describe('the four steps of the budget', () => {
  test('off: no limit', async () => {
    const server = await start({ HANDRAIL_ACTION_LIMIT: '1' })
    succeeded(await openPage(server.url).say('the sea?'))
    expect(server.model.requests).toHaveLength(3)
    expect(await governor(server)).toMatchObject({ mode: 'off', total: 3 })
  })

  test('on: until it is used up; then the card, and the very call that waited', async () => {
    const server = await start(on(2))
    const page = openPage(server.url, { actions: [card] })
    succeeded(await page.say('the sea?'))
    expect(server.model.requests).toHaveLength(2)
    const { id, name, arguments: args } = cardOf(page)
    expect(name).toBe('reconfigureHITL')
    expect(args).toMatchObject({
      ...{ actionLimit: 2, isHitlEnabled: true, actionsUsed: 2, total: 2 },
      pending: { agent: 'assistant', purpose: 'result of look: saw place 1' },
    })
    page.add(resultMessage(id, name, { newLimit: 20, newStatus: true }))
    succeeded(await page.complete())
    expect(page.shown().at(-1)).toBe('assistant: Answer 2.')
    expect(said(server.model.requests[2]).at(-1)).toBe('tool: saw place 1')
    expect(server.looked).toEqual(['place 0', 'place 1'])
    expect(await governor(server)).toMatchObject({ actionLimit: 20, actionsUsed: 1, total: 3 })
  })

  test('its handler in the page reconfigures, as useCopilotAction does', async () => {
    const server = await start(on(1))
    const seen: unknown[] = []
    const handler = (args: unknown) => {
      seen.push(args)
      return { newLimit: seen.length, newStatus: true }
    }
    const page = openPage(server.url, { actions: [{ ...card, handler }] })
    succeeded(await page.say('the sea?'))
    // This client also runs the handler of a card again that was answered before: nothing comes of it.
    expect(new Set(seen.map((one) => (one as { askId: string }).askId)).size).toBe(2)
    expect(await governor(server)).toMatchObject({ actionLimit: seen.length, total: 3 })
    expect(page.shown().at(-1)).toBe('assistant: Answer 2.')
    expect(server.model.requests).toHaveLength(3)
  })

  test('without the card: an interrupt, and the very call that waited', async () => {
    const server = await start(on(2))
    const page = openPage(server.url)
    succeeded(await page.say('the sea?'))
    expect(page.interrupt!.value).toMatchObject({
      ...{ kind: 'budget', input: { actionLimit: 2, actionsUsed: 2, pending: {} } },
    })
    succeeded(await page.resolve({ newLimit: 20, newStatus: true }))
    expect(page.shown().at(-1)).toBe('assistant: Answer 2.')
    expect(server.model.requests).toHaveLength(3)
  })

  test('an ops request answers the card: the page goes on when it asks', async () => {
    const server = await start(on(2))
    const page = openPage(server.url, { actions: [card] })
    await page.say('the sea?')
    await server.request('PUT', '/threads/t/governor', { isHitlEnabled: false })
    await expect.poll(() => server.model.requests.length).toBe(3)
    succeeded(await page.complete())
    expect(page.shown().at(-1)).toBe('assistant: Answer 2.')
  })
})

test.for([
  [{ newLimit: 0 }],
  [{ newLimit: -1 }],
  [{ newLimit: 1e9 }],
  [{ newLimit: '20' }],
  [{}],
  ['NaN'],
] as const)('%j is no budget: it is refused, and the card stays', async ([words]) => {
  const server = await start(on(1))
  const page = openPage(server.url, { actions: [card] })
  await page.say('the sea?')
  const { id, name } = cardOf(page)
  page.add(resultMessage(id, name, words))
  const { error } = await page.complete()
  expect(error).toMatchObject({ graphQLErrors: [{ extensions: { code: 'MISUSE' } }] })
  expect((await governor(server)).pending).toBe(id)
  expect(server.model.requests).toHaveLength(1)
})

test('tasks without a thread are counted on the user, and refused when the day is spent', async () => {
  const model = scriptedModel(() => [text('Done.')])
  const server = await serve({ model, builtIns: false }, { env: { HANDRAIL_USER_LIMIT: '2' } })
  const task = () => {
    const { threadId: _, ...data } = dataOf([textInput('sum it up', crypto.randomUUID())], {
      metadata: { requestType: 'Task' },
    }) as { threadId?: string }
    return generate(server.url, data)
  }
  const statuses: unknown[] = []
  for (let n = 0; n < 3; n++) statuses.push((await task()).response.status)
  expect(statuses).toMatchObject([{ code: 'Success' }, { code: 'Success' }, { code: 'Failed' }])
  expect(model.requests).toHaveLength(2)
})
