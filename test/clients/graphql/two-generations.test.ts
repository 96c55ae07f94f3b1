import { describe, expect, test } from 'vitest'
import type { Agent } from '../../../src/core/agent.ts'
import { call, scriptedModel, text } from '../../../src/models/scripted.ts'
import { gate } from '../../support/gate.ts'
import { serve } from '../../support/serve.ts'
import { send, story } from '../../support/story.ts'
import { said } from '../../support/tools.ts'
import { userMessage as aguiUser, ending, finished, httpClient, toolMessage } from '../support.ts'
import {
  type Action,
  metaEvent,
  openPage,
  resultMessage,
  succeeded,
  until,
  userMessage,
} from './support.ts'

/** One server, and a thread that stands in the middle of its first text. */
async function standing() {
  const stands = gate()
  const model = scriptedModel(async function* (_request, n, signal) {
    yield text(`Answer ${n}`)
    if (n === 0) await stands.pass(signal)
    yield text('!')
  })
  const env = { HANDRAIL_GRAPHQL_GRACE_MS: '50' }
  const server = await serve({ model, builtIns: false }, { env })
  return { server, model, stands, agui: httpClient(server.url, 't'), page: openPage(server.url) }
}

const sees = (client: ReturnType<typeof httpClient>, words: string) =>
  until(() => client.shown().some((line) => line.includes(words)))

describe('a run', () => {
  test('that AG-UI began is joined, live, by a GraphQL request with nothing new', async () => {
    const { agui, page, stands, model } = await standing()
    const saying = agui.say('go')
    await stands.reached
    expect(await page.load()).toMatchObject({ exists: true })
    expect(page.shown()[0]).toBe('user: go')
    const joining = page.begin()
    await joining.sees('Answer 0')
    expect(joining.seen.at(-1)!.status).toBeUndefined()
    stands.open()
    succeeded(await joining.done)
    finished(await saying)
    expect(page.shown()).toEqual(['user: go', 'assistant: Answer 0!'])
    expect(page.messages.map(({ id }) => id)).toEqual(agui.agent.messages.map(({ id }) => id))
    expect(model.requests).toHaveLength(1)
  })

  test('that GraphQL began is seen live by an AG-UI client that connects', async () => {
    const { agui, page, stands, model } = await standing()
    page.add(userMessage('go'))
    const watching = page.begin()
    await watching.sees('Answer 0')
    const connecting = agui.connect()
    await sees(agui, 'Answer 0')
    stands.open()
    succeeded(await watching.done)
    finished(await connecting)
    expect(agui.shown()).toEqual(['user: go', 'assistant: Answer 0!'])
    expect(page.messages.map(({ id }) => id)).toEqual(agui.agent.messages.map(({ id }) => id))
    expect(model.requests).toHaveLength(1)
  })

  test('that AG-UI stops ends for GraphQL, and the page is told', async () => {
    const { server, agui, page, stands } = await standing()
    page.add(userMessage('go'))
    const watching = page.begin()
    await watching.sees('Answer 0')
    const stopping = await fetch(`${server.url}/copilotkit/agent/default/stop/t`, {
      ...{ method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' },
    })
    expect(await stopping.json()).toMatchObject({ stopped: true })
    const { status } = await watching.done
    expect(status).toMatchObject({ code: 'Failed', reason: 'MESSAGE_STREAM_INTERRUPTED' })
    stands.open()
    await agui.connect()
    expect(agui.shown()).toEqual(['user: go', 'assistant: Answer 0'])
    succeeded(await page.say('go on'))
    expect(page.shown().at(-1)).toBe('assistant: Answer 1!')
  })

  test('that GraphQL stops ends for AG-UI as cancelled', async () => {
    const { agui, page } = await standing()
    page.add(userMessage('go'))
    const watching = page.begin()
    await watching.sees('Answer 0')
    const connecting = agui.connect()
    await sees(agui, 'Answer 0')
    watching.stop()
    await watching.done
    expect(ending(await connecting)).toMatchObject({
      ...{ type: 'RUN_FINISHED', outcome: { type: 'cancelled' } },
    })
  })

  test('that AG-UI began and is read by a page stops when the page is left', async () => {
    const { agui, page } = await standing()
    const saying = agui.say('go')
    await sees(agui, 'Answer 0')
    await page.load()
    const joining = page.begin()
    await joining.sees('Answer 0')
    joining.stop()
    await joining.done
    expect(ending(await saying)).toMatchObject({ outcome: { type: 'cancelled' } })
  })

  test('of AG-UI that is busy: a new message by GraphQL cancels it and goes next', async () => {
    const { agui, page } = await standing()
    const saying = agui.say('go')
    await sees(agui, 'Answer 0')
    await page.load()
    succeeded(await page.say('something else'))
    expect(page.shown().at(-1)).toBe('assistant: Answer 1!')
    expect(ending(await saying)).toMatchObject({ outcome: { type: 'cancelled' } })
  })
})

describe('a question', () => {
  const asking = async () => {
    const server = await story([[text('I pay.'), send('1')], [text('Done.')], [text('More.')]])
    return { server, agui: httpClient(server.url, 't'), page: openPage(server.url) }
  }
  const approve = (id: string) => ({
    resume: [{ interruptId: id, status: 'resolved' as const, payload: { approved: true } }],
  })

  test('that GraphQL was shown is answered by AG-UI, and the page hears how it went', async () => {
    const { server, agui, page } = await asking()
    await page.say('pay ann')
    const { askId } = page.interrupt!.value
    await agui.connect()
    expect(agui.agent.pendingInterrupts).toMatchObject([{ id: askId, message: 'Send 5 to “ann”' }])
    finished(await agui.run(approve(askId)))
    expect(server.sent).toHaveLength(1)
    // The page does not know yet: it answers too.
    succeeded(await page.resolve('no'))
    expect(server.sent).toHaveLength(1)
    expect(page.shown().at(-1)).toBe('assistant: Done.')
    expect(page.interrupt).toBeUndefined()
    expect(server.model.requests).toHaveLength(2)
  })

  test('that AG-UI was shown is answered by GraphQL, and AG-UI hears how it went', async () => {
    const { server, agui, page } = await asking()
    await agui.say('pay ann')
    const [interrupt] = agui.agent.pendingInterrupts
    await page.load()
    succeeded(await page.complete())
    expect(page.interrupt!.value.askId).toBe(interrupt!.id)
    succeeded(await page.resolve({ approved: false, reason: 'no' }))
    expect(server.sent).toEqual([])
    await agui.run(approve(interrupt!.id))
    expect(server.sent).toEqual([])
    expect(agui.shown().at(-1)).toBe('assistant: Done.')
    await agui.connect()
    expect(agui.agent.pendingInterrupts).toEqual([])
  })

  test('answered by both at once is done once', async () => {
    const { server, agui, page } = await asking()
    await page.say('pay ann')
    const { askId } = page.interrupt!.value
    await agui.connect()
    const both = await Promise.all([page.resolve('yes'), agui.run(approve(askId))])
    succeeded(both[0])
    expect(ending(both[1]).type).toBe('RUN_FINISHED')
    expect(server.sent).toHaveLength(1)
    expect(server.model.requests).toHaveLength(2)
    await agui.connect()
    expect(agui.shown().at(-1)).toBe('assistant: Done.')
    await page.load()
    expect(page.shown().at(-1)).toBe('assistant: Done.')
  })

  test('is a card for the one and an interrupt for the other', async () => {
    const { server, agui } = await asking()
    const card: Action = { name: 'approveAction' }
    const page = openPage(server.url, { actions: [card] })
    await page.say('pay ann')
    expect(page.shown().at(-1)).toMatch(/^call approveAction/)
    await agui.connect()
    const [interrupt] = agui.agent.pendingInterrupts
    finished(await agui.run(approve(interrupt!.id)))
    // Its card answered now, by a handler that was slow.
    page.add(resultMessage(interrupt!.id, 'approveAction', { approved: true }))
    succeeded(await page.complete())
    expect(server.sent).toHaveLength(1)
    expect(page.shown().at(-1)).toBe('assistant: Done.')
  })

  test('that was answered with a word by GraphQL is known to be by AG-UI', async () => {
    const { server, agui, page } = await asking()
    await page.say('pay ann')
    const { text: value } = page.interrupt!
    await page.complete({ metaEvents: [metaEvent(value, 'yes')] })
    await agui.connect()
    expect(agui.agent.pendingInterrupts).toEqual([])
    expect(agui.shown()).toContain('tool: sent 5 to ann')
    expect(server.sent).toHaveLength(1)
  })
})

describe('a call of the page', () => {
  const parameters = { type: 'object', properties: {} }
  const paint = { name: 'paint', description: 'Paints', parameters }
  const painting = [[call('1', 'paint', {})], [text('Nice.')]]

  test('made to GraphQL is answered by AG-UI', async () => {
    const server = await story(painting)
    const page = openPage(server.url, { actions: [{ name: 'paint' }] })
    await page.say('paint')
    const agui = httpClient(server.url, 't')
    await agui.connect({ tools: [paint] })
    agui.agent.addMessage(toolMessage('1', 'painted'))
    finished(await agui.run({ tools: [paint] }))
    expect(said(server.model.requests[1]).at(-1)).toBe('tool: painted')
    succeeded(await page.complete())
    expect(page.shown().at(-1)).toBe('assistant: Nice.')
  })

  test('made to AG-UI is answered by GraphQL', async () => {
    const server = await story(painting)
    const agui = httpClient(server.url, 't')
    agui.agent.addMessage(aguiUser('paint'))
    await agui.run({ tools: [paint] })
    const page = openPage(server.url, { actions: [{ name: 'paint' }] })
    await page.load()
    expect(page.shown().at(-1)).toBe('call paint({})')
    page.add(resultMessage('1', 'paint', 'painted'))
    succeeded(await page.complete())
    expect(page.shown().at(-1)).toBe('assistant: Nice.')
    await agui.connect({ tools: [paint] })
    expect(agui.shown().slice(-2)).toEqual(['tool: painted', 'assistant: Nice.'])
  })
})

describe('a chat', () => {
  test('of both: each sees what the other said, and the model hears all of it once', async () => {
    const server = await story((_request, n) => [text(`Answer ${n}.`)])
    const page = openPage(server.url)
    const agui = httpClient(server.url, 't')
    await page.say('one')
    await agui.connect()
    await agui.say('two')
    succeeded(await page.say('three'))
    await agui.connect()
    const all = [
      ...['user: one', 'assistant: Answer 0.', 'user: two', 'assistant: Answer 1.'],
      ...['user: three', 'assistant: Answer 2.'],
    ]
    expect(agui.shown()).toEqual(all)
    expect(said(server.model.requests[2])).toEqual(all.slice(0, -1))
    // The page lacked a turn; with the answer it was given all of it, in order.
    expect(page.shown()).toEqual(all)
    const fresh = openPage(server.url)
    await fresh.load()
    expect(fresh.shown()).toEqual(all)
  })

  test('of an agent with a state: what one changes the other has', async () => {
    const counter: Agent = {
      name: 'counter',
      async *run(ctx) {
        const { count = 0 } = (ctx.state() ?? {}) as { count?: number }
        yield { type: 'state', value: { count: count + 1 } }
        const parts = [{ type: 'text' as const, text: `That is ${count + 1}.` }]
        yield { type: 'message', message: { id: ctx.newId('msg'), role: 'assistant', parts } }
      },
    }
    const server = await serve({ agents: [counter] })
    const agui = httpClient(server.url, 't')
    const page = openPage(server.url, { agent: 'counter' })
    await agui.say('count')
    expect(await page.load()).toMatchObject({ state: { count: 1 } })
    succeeded(await page.say('count'))
    expect(page.states.counter).toEqual({ count: 2 })
    await agui.connect()
    expect(agui.agent.state).toEqual({ count: 2 })
    await agui.say('count')
    expect(agui.agent.state).toEqual({ count: 3 })
    expect(await page.load()).toMatchObject({ state: { count: 3 } })
  })

  test('deleted by the one is over for the other', async () => {
    const { server, page, stands } = await standing()
    page.add(userMessage('go'))
    const watching = page.begin()
    await watching.sees('Answer 0')
    const gone = await fetch(`${server.url}/copilotkit/threads/t`, {
      ...{ method: 'DELETE', headers: { 'content-type': 'application/json' }, body: '{}' },
    })
    stands.open()
    if (!gone.ok) return // a thread at work may be kept
    const { status, error } = await watching.done
    expect(error).toBeUndefined()
    expect(status.code).toBe('Failed')
  })
})
