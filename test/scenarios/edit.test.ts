import { describe, expect, test } from 'vitest'
import { scriptedModel, text } from '../../src/models/scripted.ts'
import { agui } from '../support/agui.ts'
import { serve } from '../support/serve.ts'
import { send, story } from '../support/story.ts'
import { find, names, problem, said, seedFrames } from '../support/tools.ts'

describe('edit', () => {
  async function three() {
    const server = await story((request) => [text(`re: ${said(request).at(-1)}`)])
    const ids: string[] = []
    for (const message of ['one', 'two', 'three']) {
      const stream = await server.start('c', message)
      await stream.rest()
      ids.push(stream.response.headers.get('x-interaction-id')!)
    }
    return { server, ids }
  }
  const messagesOf = (chat: { interactions: { user_message: string }[] }) =>
    chat.interactions.map(({ user_message }) => user_message)

  test.each([
    [0, ['new'], ['user: new']],
    [1, ['one', 'new'], ['user: one', 'assistant: re: user: one', 'user: new']],
    [
      2,
      ['one', 'two', 'new'],
      [
        'user: one',
        'assistant: re: user: one',
        'user: two',
        'assistant: re: user: two',
        'user: new',
      ],
    ],
  ])('of interaction %i goes on from the one before it (seed 5.4)', async (at, path, heard) => {
    const { server, ids } = await three()
    const frames = await (await server.edit('c', ids[at]!, 'new')).rest()
    expect(names(seedFrames(frames))).toEqual([
      'interaction_started',
      'answer',
      'interaction_complete',
    ])
    expect(find(frames, 'interaction_started').interaction_id).not.toBe(ids[at])
    expect(said(server.model.requests.at(-1))).toEqual(heard)
    expect(messagesOf(await server.chat('c'))).toEqual(path)

    const all = await server.chat('c', '?include=superseded')
    expect(messagesOf(all)).toEqual(['one', 'two', 'three', 'new'])
    const marked = all.interactions.map((one: { superseded?: boolean }) => one.superseded ?? false)
    expect(marked).toEqual([0, 1, 2, 3].map((i) => i >= at && i < 3))
    expect(all.interactions.map((one: { parent_id: string }) => one.parent_id)).toEqual([
      null,
      ids[0],
      ids[1],
      at === 0 ? null : ids[at - 1],
    ])
    expect(all.interactions[at]).toMatchObject({ status: 'COMPLETED' })
    const old = await (await server.request('GET', `/chats/c/interactions/${ids[at]}`)).json()
    expect(old).toMatchObject({ status: 'COMPLETED', superseded: true })

    await (await server.start('c', 'on')).rest()
    expect(messagesOf(await server.chat('c'))).toEqual([...path, 'on'])
  })

  test('is refused while another runs or waits, and goes through with when_busy=cancel', async () => {
    const server = await story((request) => {
      const last = said(request).at(-1)!
      if (last.includes('hang')) return [text('hanging'), 'wait']
      return last.includes('pay') ? [send(request.messages.at(-1)!.id)] : [text('ok')]
    })
    const first = await server.start('c', 'one')
    await first.rest()
    const one = first.response.headers.get('x-interaction-id')!

    const hanging = await server.start('c', 'hang')
    await hanging.until('answer_delta')
    const running = hanging.response.headers.get('x-interaction-id')!
    const path = `/chats/c/interactions/${one}/edit`
    const busy = await server.request('POST', path, { new_user_message: 'x' })
    expect(await problem(busy)).toMatchObject({
      http: 409,
      code: 'thread_busy',
      interaction_id: running,
      status: 'RUNNING',
    })
    const edited = await server.edit('c', running, 'pay', '?when_busy=cancel')
    expect((await hanging.rest()).at(-1)?.data.status).toBe('CANCELLED')

    const ask = find(await edited.until('approval_required'), 'approval_required')
    await server.recorded('c', 'run.waiting')
    const waiting = await server.request('POST', path, { new_user_message: 'x' })
    expect(await problem(waiting)).toMatchObject({
      http: 409,
      code: 'thread_waiting',
      interaction_id: edited.response.headers.get('x-interaction-id'),
      status: 'WAITING_APPROVAL',
      approval_ids: [ask.approval_id],
    })
    const last = await server.edit('c', one, 'two', '?when_busy=cancel')
    expect((await edited.rest()).at(-1)?.data.status).toBe('CANCELLED')
    expect((await last.rest()).at(-1)?.data.status).toBe('COMPLETED')
    expect(messagesOf(await server.chat('c'))).toEqual(['two'])
    expect(server.sent).toEqual([])
  })

  test('of a message that waits in line is refused before anything is cancelled', async () => {
    const server = await story([[send('1')], [text('next')]])
    const waiting = await server.start('c', 'pay')
    const started = find(await waiting.until('approval_required'), 'interaction_started')
    const queued = await server.start('c', 'later', '?when_busy=queue')
    const id = queued.response.headers.get('x-interaction-id')!
    const path = `/chats/c/interactions/${id}/edit?when_busy=cancel`
    const refused = await server.request('POST', path, { new_user_message: 'sooner' })
    expect(await problem(refused)).toMatchObject({ http: 409, code: 'thread_busy' })
    const chat = await server.chat('c')
    expect(chat.interactions[0]).toMatchObject({
      id: started.interaction_id,
      status: 'WAITING_APPROVAL',
    })
    waiting.leave()
    queued.leave()
  })

  test('cancel-and-send is one step, and the same key again is the same interaction', async () => {
    const server = await story([[send('1')], [text('instead')]])
    const waiting = await server.start('c', 'pay')
    await waiting.until('approval_required')
    const key = { 'idempotency-key': 'once' }
    const first = await server.start('c', 'no, this', '?when_busy=cancel', key)
    const frames = await first.rest()
    expect(frames.at(-1)?.data.status).toBe('COMPLETED')
    expect((await waiting.rest()).at(-1)?.data.status).toBe('CANCELLED')
    const again = await server.start('c', 'no, this', '?when_busy=cancel', key)
    expect(await again.rest()).toEqual(frames.filter(({ event }) => event !== 'answer_delta'))
    expect(server.model.requests).toHaveLength(2)
  })

  test('history pages only by interactions that it shows', async () => {
    const { server, ids } = await three()
    await (await server.edit('c', ids[1]!, 'new')).rest()
    const page = await server.chat('c', `?before=${ids[0]}`)
    expect(page.interactions).toEqual([])
    const gone = await server.request('GET', `/chats/c?before=${ids[2]}`)
    expect(await problem(gone)).toMatchObject({ http: 404, code: 'run_not_found' })
  })
})

test('a thread that starts with several user messages has one title in every list and view', async () => {
  const server = await serve({ model: scriptedModel(() => [text('Hello.')]), builtIns: false })
  const messages = ['First', 'Second'].map((content, n) => ({ id: `m${n}`, role: 'user', content }))
  await agui(server.url, { messages })
  const get = async (path: string) => (await fetch(server.url + path)).json()
  const titles = [
    (await get('/chats')).chats[0].title,
    (await get('/chats/c')).title,
    (await get('/copilotkit/threads')).threads[0].name,
    (await get('/copilotkit/threads/c/outline')).name,
  ]
  expect(titles).toEqual(Array(4).fill('First'))
})
