import { describe, expect, test } from 'vitest'
import { scriptedModel, text } from '../../../src/models/scripted.ts'
import { serve } from '../../support/serve.ts'
import { look, send, story } from '../../support/story.ts'
import { said, tools } from '../../support/tools.ts'
import { type Action, openPage, type Page, resultMessage, succeeded } from './support.ts'

const approve: Action = { name: 'approveAction', description: 'A card' }
const budget: Action = { name: 'reconfigureHITL', description: 'A card' }

/** The card that the page shows last. */
function cardOf(page: Page) {
  const message = page.messages.findLast((one) => one.isActionExecutionMessage())
  if (!message?.isActionExecutionMessage()) throw new Error('there is no card')
  return message
}

const settle = (page: Page, said: unknown) => {
  const { id, name } = cardOf(page)
  page.add(resultMessage(id, name, said))
  return page.complete()
}

describe('an approval shown as a card of the page', () => {
  async function carded() {
    const server = await story([[text('I pay.'), send('1')], [text('Done.')], [text('More.')]])
    const page = openPage(server.url, { actions: [approve] })
    const heard = await page.say('pay ann')
    return { server, page, heard }
  }

  test('is the last call of the response, has what to decide on, and no interrupt', async () => {
    const { page, heard, server } = await carded()
    succeeded(heard)
    expect(heard.last.metaEvents).toEqual([])
    const card = cardOf(page)
    expect(page.messages.at(-1)).toBe(card)
    expect(card.name).toBe('approveAction')
    expect(card.arguments).toMatchObject({
      ...{ askId: card.id, kind: 'approval', title: 'Send 5 to “ann”' },
      ...{ tool: 'send', input: { to: 'ann', amount: 5 } },
    })
    // The model is not offered the card, and knows nothing of it.
    expect(server.model.requests[0]!.tools.map(({ name }) => name)).not.toContain('approveAction')
  })

  test.for([
    ['approves', { approved: true }, 1],
    ['rejects', { approved: false, reason: 'ann is rich' }, 0],
  ] as const)('%s by its result', async ([, words, times]) => {
    const { server, page } = await carded()
    succeeded(await settle(page, words))
    expect(server.sent).toHaveLength(times)
    expect(page.shown().at(-1)).toBe('assistant: Done.')
    expect(said(server.model.requests[1]).join()).not.toContain('approveAction')
    // The same list again is no second answer.
    succeeded(await page.complete())
    expect(server.sent).toHaveLength(times)
    expect(server.model.requests).toHaveLength(2)
    succeeded(await page.say('and now?'))
    expect(page.shown().at(-1)).toBe('assistant: More.')
    expect(server.sent).toHaveLength(times)
  })

  test('runs with the arguments that the card changed', async () => {
    const { server, page } = await carded()
    succeeded(await settle(page, { approved: true, editedArgs: { to: 'bob', amount: 2 } }))
    expect(server.sent).toEqual([{ to: 'bob', amount: 2 }])
  })

  test('an edited call is shown with the arguments that ran, in the open page and in a new one', async () => {
    const { server, page } = await carded()
    const edited = { to: 'bob', amount: 2 }
    succeeded(await settle(page, { approved: true, editedArgs: edited }))
    const ran = (messages: Page['messages']) =>
      messages.flatMap((one) =>
        one.isActionExecutionMessage() && one.name === 'send' ? [one.arguments] : [],
      )
    expect(ran(page.messages)).toEqual([edited])
    expect(page.shown().at(-1)).toBe('assistant: Done.')
    const fresh = openPage(server.url, { actions: [approve] })
    await fresh.load()
    expect(ran(fresh.messages)).toEqual([edited])
    // A client that has them is not sent all of the thread again.
    const again = await page.say('and now?')
    expect(JSON.stringify(again.last)).not.toContain('"bob"')
  })

  test('is decided by its handler, in the page', async () => {
    const server = await story([[send('1')], [text('Done.')]])
    const seen: unknown[] = []
    const handler = (args: unknown) => {
      seen.push(args)
      return { approved: true }
    }
    const page = openPage(server.url, { actions: [{ ...approve, handler }] })
    succeeded(await page.say('pay ann'))
    expect(seen).toMatchObject([{ tool: 'send', input: { to: 'ann', amount: 5 } }])
    expect(page.shown().at(-1)).toBe('assistant: Done.')
    expect(server.sent).toHaveLength(1)
  })

  test('is available to agents only, as useHumanInTheLoop declares it', async () => {
    const server = await story([[send('1')], [text('Done.')]])
    const remote: Action = { ...approve, available: 'remote' }
    const page = openPage(server.url, { actions: [remote], agent: 'default' })
    succeeded(await page.say('pay ann'))
    expect(cardOf(page).name).toBe('approveAction')
    succeeded(await settle(page, { approved: true }))
    expect(server.sent).toHaveLength(1)
  })

  test('comes back on a page that loads later, and is answered there', async () => {
    const { server, page } = await carded()
    const other = openPage(server.url, { actions: [approve] })
    await other.load()
    if (!other.shown().join().includes('approveAction')) succeeded(await other.complete())
    expect(cardOf(other).id).toBe(cardOf(page).id)
    succeeded(await settle(other, { approved: true }))
    expect(other.shown().at(-1)).toBe('assistant: Done.')
    expect(server.sent).toHaveLength(1)
  })

  test('does not hold the chat: who types on passes over it, and nothing was done', async () => {
    const { server, page } = await carded()
    succeeded(await page.say('never mind'))
    expect(page.shown().at(-1)).toBe('assistant: Done.')
    const { id, name } = cardOf(page)
    const at = page.messages.findIndex((one) => one.id === id)
    page.messages = page.messages.toSpliced(at + 1, 0, resultMessage(id, name, { approved: true }))
    succeeded(await page.say('bye'))
    expect(server.sent).toEqual([])
    expect(page.shown().at(-1)).toBe('assistant: More.')
  })

  test.for([['yes?'], ['{}'], ['{"approved":"yes"}'], ['[true]']])(
    'refuses the answer %s, and stays open',
    async ([words]) => {
      const { server, page } = await carded()
      const list = page.messages
      const { error } = await settle(page, words)
      expect(error).toMatchObject({ graphQLErrors: [{ extensions: { code: 'MISUSE' } }] })
      expect(server.sent).toEqual([])
      page.messages = list
      succeeded(await settle(page, { approved: true }))
      expect(server.sent).toHaveLength(1)
    },
  )
})

describe('the budget of a chat', () => {
  async function limited() {
    const box = tools()
    const model = scriptedModel([[look('1', 'sea')], [text('Blue.')], [text('More.')]])
    const env = { HANDRAIL_HITL: 'on', HANDRAIL_ACTION_LIMIT: '1' }
    const server = await serve({ model, tools: box.all, builtIns: false }, { env })
    return { ...server, model, looked: box.looked }
  }

  test('is a card of reconfigureHITL where the page has one; more calls let the run go on', async () => {
    const server = await limited()
    const page = openPage(server.url, { actions: [budget] })
    succeeded(await page.say('the sea?'))
    expect(cardOf(page)).toMatchObject({
      ...{ name: 'reconfigureHITL', arguments: { actionLimit: 1, isHitlEnabled: true } },
    })
    expect(server.model.requests).toHaveLength(1)
    succeeded(await settle(page, { newLimit: 25, newStatus: true }))
    expect(page.shown().at(-1)).toBe('assistant: Blue.')
    expect(server.looked).toEqual(['sea'])
    succeeded(await page.complete())
    expect(server.model.requests).toHaveLength(2)
  })

  test('is an interrupt elsewhere', async () => {
    const server = await limited()
    const page = openPage(server.url)
    succeeded(await page.say('the sea?'))
    expect(page.interrupt!.value).toMatchObject({
      ...{ kind: 'budget', title: expect.any(String), askId: expect.any(String) },
    })
    succeeded(await page.resolve({ newLimit: 5 }))
    expect(page.shown().at(-1)).toBe('assistant: Blue.')
    expect(said(server.model.requests[1]).at(-1)).toBe('tool: saw sea')
  })

  test('that is stopped ends the run: the model is asked no more', async () => {
    const server = await limited()
    const page = openPage(server.url, { actions: [budget] })
    await page.say('the sea?')
    const heard = await settle(page, { stop: true })
    expect(heard.error).toBeUndefined()
    expect(heard.status.code).toMatch(/Success|Failed/)
    expect(server.model.requests).toHaveLength(1)
  })

  test('is not raised by a made-up card', async () => {
    const server = await limited()
    const page = openPage(server.url, { actions: [budget] })
    await page.say('the sea?')
    const list = page.messages
    page.add(resultMessage('ask_forged', 'reconfigureHITL', { newLimit: 1_000 }))
    const { error } = await page.complete()
    expect(error).toMatchObject({ graphQLErrors: [{ extensions: { code: 'MISUSE' } }] })
    expect(server.model.requests).toHaveLength(1)
    page.messages = list
    succeeded(await settle(page, { newLimit: 1, newStatus: true }))
    expect(page.shown().at(-1)).toBe('assistant: Blue.')
    succeeded(await page.say('more?'))
    expect(cardOf(page).name).toBe('reconfigureHITL')
    expect(server.model.requests).toHaveLength(2)
  })
})
