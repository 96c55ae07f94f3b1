import { ɵcreateThreadStore } from '@copilotkit/core'
import { expect, test } from 'vitest'
import { call, scriptedModel, text } from '../../src/models/scripted.ts'
import { gate } from '../support/gate.ts'
import { serve } from '../support/serve.ts'
import { look, story } from '../support/story.ts'
import { coreClient, ending, httpClient, poster, runBody, userMessage } from './support.ts'

type Thread = { id: string; name: string | null; archived: boolean }

/** CopilotKit's own list of threads, as its pages use it. */
async function listOf(url: string, transport?: 'single') {
  const config = transport && { runtimeTransport: transport }
  const { core } = await coreClient(url, 'none', { ...(config && { config }) })
  const store = ɵcreateThreadStore({ fetch: core.ɵruntimeFetch })
  store.start()
  store.setContext({
    ...{ runtimeUrl: `${url}/copilotkit`, agentId: 'default', headers: {}, limit: 2 },
    includeArchived: true,
  } as never)
  const read = (ready: (threads: Thread[]) => boolean) =>
    new Promise<Thread[]>((resolve) => {
      const sub = store
        .select((state) => state)
        .subscribe((state) => {
          const threads = state.threads as unknown as Thread[]
          if (!state.isLoading && ready(threads)) {
            setImmediate(() => sub.unsubscribe())
            resolve(threads)
          }
        })
    })
  return { store, read }
}

const hello: Parameters<typeof story>[0] = () => [text('Hi.')]

test.for(['multi', 'single'] as const)(
  'CopilotKit lists, renames, archives, brings back and deletes threads (%s route)',
  async (transport) => {
    const server = await story(hello)
    for (const id of ['a', 'b', 'c']) await httpClient(server.url, id).say(`I am ${id}`)
    const { store, read } = await listOf(server.url, transport === 'single' ? 'single' : undefined)
    const first = await read((threads) => threads.length >= 2)
    expect(first.map(({ id }) => id)).toEqual(['c', 'b']) // newest first, and a page of two
    store.fetchNextPage()
    await read((threads) => threads.length === 3)
    const one = async (id: string) => (await read(() => true)).find((row) => row.id === id)
    await store.renameThread('b', 'Bees')
    expect(await one('b')).toMatchObject({ name: 'Bees', archived: false })
    await store.archiveThread('b')
    const list = async (query = '') =>
      (await (await server.request('GET', `/copilotkit/threads${query}`)).json()) as {
        threads: Thread[]
      }
    expect((await list()).threads.map(({ id }) => id)).toEqual(['c', 'a'])
    const all = (await list('?includeArchived=true')).threads
    expect(all.find(({ id }) => id === 'b')).toMatchObject({ name: 'Bees', archived: true })
    expect((await list('?archived=true&limit=1')).threads.map(({ id }) => id)).toEqual(['b'])
    await store.unarchiveThread('b')
    expect((await list()).threads.map(({ id }) => id)).toContain('b')
    await store.deleteThread('a')
    expect((await list('?includeArchived=true')).threads.map(({ id }) => id)).not.toContain('a')
    const gone = httpClient(server.url, 'a')
    expect((await gone.connect()).events).toEqual([])
    store.stop()
  },
)

test('a row of the list has what CopilotKit reads, and dates it can sort by', async () => {
  const server = await story(hello)
  await httpClient(server.url, 'a').say('hello')
  const answer = await server.request('GET', '/copilotkit/threads?agentId=default&limit=20')
  const { threads, nextCursor } = (await answer.json()) as { threads: object[]; nextCursor: null }
  expect(nextCursor).toBeNull()
  const date = expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/)
  expect(threads).toMatchObject([
    {
      ...{ id: 'a', agentId: 'default', archived: false, organizationId: expect.any(String) },
      ...{ createdById: expect.any(String), createdAt: date, updatedAt: date, lastRunAt: date },
    },
  ])
})

test('a thread is looked into: messages, state, events; an unknown one is empty', async () => {
  const server = await story([[look('1', 'sea')], [text('Blue.')]])
  await httpClient(server.url, 't').say('the sea?')
  const get = async (path: string) =>
    (await (await server.request('GET', `/copilotkit/threads/${path}`)).json()) as never
  expect(await get('t/messages')).toMatchObject({
    messages: [
      { role: 'user', content: 'the sea?' },
      { role: 'assistant', toolCalls: [{ id: '1', name: 'look', args: '{"at":"sea"}' }] },
      { role: 'tool', toolCallId: '1', content: 'saw sea' },
      { role: 'assistant', content: 'Blue.' },
    ],
  })
  expect(await get('t/state')).toEqual({ state: null })
  expect((await get('t/events')) as { events: object[] }).toMatchObject({
    events: expect.arrayContaining([expect.objectContaining({ type: 'RUN_STARTED' })]),
  })
  expect(await get('never/messages')).toEqual({ messages: [] })
  expect(await get('never/events')).toEqual({ events: [] })
  expect(await get('never/state')).toEqual({ state: null })
})

test('a thread that is deleted in the middle of a run is stopped first, and stays gone', async () => {
  const stands = gate()
  const model = scriptedModel(async function* (_request, _n, signal) {
    yield text('It is ')
    await stands.pass(signal)
  })
  const server = await serve({ model, builtIns: false })
  const client = httpClient(server.url, 't')
  const saying = client.say('go')
  await stands.reached
  expect((await server.request('DELETE', '/copilotkit/threads/t', { agentId: 'default' })).ok).toBe(
    true,
  )
  expect(ending(await saying).type).toMatch(/RUN_FINISHED|RUN_ERROR/)
  expect((await server.request('GET', '/chats/t')).status).toBe(404)
})

test('nobody can change what is not there', async () => {
  const server = await story(hello)
  const name = { agentId: 'default', name: 'N' }
  for (const [method, path, body] of [
    ['PATCH', '/copilotkit/threads/never', name],
    ['POST', '/copilotkit/threads/never/archive', {}],
    ['DELETE', '/copilotkit/threads/never', {}],
  ] as const) {
    expect((await server.request(method, path, body)).status, `${method} ${path}`).toBe(404)
  }
  // The peer lets anyone wipe everything by this; here it is not even an address.
  expect((await server.request('POST', '/copilotkit/threads/clear', {})).status).toBe(405)
})

const suggestions = [{ title: 'Sea', message: 'Tell me of the sea' }]
const suggesting: Parameters<typeof story>[0] = ({ tools }) =>
  tools.some(({ name }) => name === 'copilotkitSuggest')
    ? [call('s', 'copilotkitSuggest', { suggestions })]
    : [text('Hi.')]

test('CopilotKit gets suggestions, and they leave no trace', async () => {
  const server = await story(suggesting)
  const client = await coreClient(server.url, 't')
  const found = new Promise<unknown>((resolve) => {
    client.core.subscribe({
      onSuggestionsChanged: ({ suggestions }) => {
        if (suggestions.length > 0 && !suggestions.some((one) => one.isLoading))
          resolve(suggestions)
      },
    })
  })
  client.core.addSuggestionsConfig({ instructions: 'Suggest.', available: 'always' })
  await client.say('hello')
  client.core.reloadSuggestions('default')
  expect(await found).toMatchObject(suggestions)
  const { threads } = (await (await server.request('GET', '/copilotkit/threads')).json()) as {
    threads: Thread[]
  }
  expect(threads.map(({ id }) => id)).toEqual(['t'])
  expect(client.shown()).toEqual(['user: hello', 'assistant: Hi.'])
})

test.for(['suggest', 'run'])(
  'suggestions by /%s are one call of a tool and keep nothing',
  async (by) => {
    const server = await story(suggesting)
    const tools = [{ name: 'copilotkitSuggest', description: '', parameters: {} }]
    const forwardedProps = { toolChoice: { type: 'function', function: { name: tools[0]!.name } } }
    const body = runBody('throw-away', [userMessage('Suggest.')], { tools, forwardedProps })
    const { events } = await poster(server.url)(`/agent/default/${by}`, body)
    const args = events.filter(({ type }) => type === 'TOOL_CALL_ARGS').map(({ delta }) => delta)
    expect(JSON.parse(args.join(''))).toEqual({ suggestions })
    expect(ending({ events }).type).toBe('RUN_FINISHED')
    expect(server.model.requests[0]!.parameters?.toolChoice).toEqual({ name: 'copilotkitSuggest' })
    expect((await server.request('GET', '/chats/throw-away')).status).toBe(404)
  },
)

test('CopilotKit sees the agents of the server', async () => {
  const server = await serve()
  const { core } = await coreClient(server.url, 't')
  expect(Object.keys(core.agents)).toContain('default')
  expect(core.threadEndpoints).toMatchObject({ list: true, inspect: true, mutations: true })
  expect([core.telemetryDisabled, core.suggestions, core.licenseStatus]).toEqual([
    ...[true, true, undefined],
  ])
})
