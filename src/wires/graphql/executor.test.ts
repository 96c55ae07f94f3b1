import { GraphQLError, getIntrospectionQuery } from 'graphql'
import { describe, expect, test } from 'vitest'
import type { RuntimeEvent } from './events.ts'
import { graphqlExecutor, type Resolvers } from './executor.ts'
import type { Asked } from './runs.ts'

/** What CopilotKit's client accepts. */
const anything =
  'application/graphql-response+json, application/json, text/event-stream, multipart/mixed'

const document = `mutation($data: GenerateCopilotResponseInput!, $properties: JSONObject) {
  generateCopilotResponse(data: $data, properties: $properties) {
    threadId
    runId
    ... @defer { status { ...Status } }
    messages @stream {
      __typename
      ... on BaseMessageOutput { id createdAt }
      ... on BaseMessageOutput @defer {
        status {
          ... on SuccessMessageStatus { code }
          ... on FailedMessageStatus { code reason }
        }
      }
      ... on TextMessageOutput { content @stream role parentMessageId }
      ... on ActionExecutionMessageOutput { name arguments @stream parentMessageId }
      ... on ResultMessageOutput { actionExecutionId actionName result }
      ... on AgentStateMessageOutput {
        threadId agentName nodeName runId active running role state
      }
    }
    metaEvents @stream {
      __typename type name
      ... on LangGraphInterruptEvent { value }
      ... on CopilotKitLangGraphInterruptEvent {
        data {
          value
          messages {
            __typename
            ... on BaseMessageOutput @defer { status { ... on SuccessMessageStatus { code } } }
            ... on TextMessageOutput { content }
            ... on ActionExecutionMessageOutput { name arguments }
            ... on ResultMessageOutput { result }
          }
        }
      }
    }
  }
}
fragment Status on ResponseStatus {
  ... on BaseResponseStatus { code }
  ... on FailedResponseStatus { reason details }
}`

const data = { metadata: {}, messages: [], frontend: { actions: [] }, threadId: 'thread-1' }
const success: RuntimeEvent = { type: 'ResponseEnd', status: { code: 'Success' } }
const begin = (messageId: string): RuntimeEvent => ({ type: 'TextMessageStart', messageId, at: 0 })
const say = (messageId: string, content: string): RuntimeEvent => ({
  type: 'TextMessageContent',
  messageId,
  content,
})
const stop = (messageId: string): RuntimeEvent => ({ type: 'TextMessageEnd', messageId })

type Batch = readonly RuntimeEvent[]

/** Resolvers that answer with these events, and an executor of them. */
function executing(events: (signal: AbortSignal) => AsyncIterable<Batch>, more = {}) {
  const given: unknown[] = []
  const resolvers: Resolvers = {
    availableAgents: async () => ({ agents: [{ id: 'a', name: 'default', description: 'Helps' }] }),
    loadAgentState: async () => {
      throw new Error('secret')
    },
    generate: async (...all) => {
      given.push(...all.slice(0, 2))
      return { threadId: 'thread-1', runId: 'run-1', extensions: null, events }
    },
    ...more,
  }
  const told: unknown[] = []
  const tell = (error: unknown, path: readonly (string | number)[] | undefined) => {
    told.push([(error as Error).message, path])
    return new GraphQLError('It failed.', { extensions: { code: 'UNKNOWN', severity: 'critical' } })
  }
  const ask = async (
    query = document,
    {
      accept = anything,
      variables = { data } as object,
      signal = undefined as AbortSignal | undefined,
      introspection = true,
    } = {},
  ) => {
    const { execute } = graphqlExecutor(resolvers, { introspection, tell })
    const headers = { accept, 'content-type': 'application/json' }
    const request = new Request('http://127.0.0.1/copilotkit', { method: 'POST', headers, signal })
    return await execute(request, { query, variables }, asked(request))
  }
  return { ask, given, told, resolvers, tell }
}

const asked = (request: Request): Asked => ({
  caller: { tenant: 't', user: 'u', roles: [], wire: 'graphql' },
  request,
})

const these = (...batches: Batch[]) =>
  async function* () {
    yield* batches
  }

interface Part {
  data?: object
  incremental?: { path: (string | number)[]; items?: unknown[]; data?: object; errors?: unknown }[]
  hasNext?: boolean
}

/** The parts of a response, one at a time, and what is known after each. */
function reading(response: Response) {
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
  let rest = ''
  const parts: Part[] = []
  const part = async (): Promise<Part | undefined> => {
    for (;;) {
      const end = rest.indexOf('\r\n---', 3)
      if (end > 0) {
        const json = rest.slice(rest.indexOf('{'), end)
        rest = rest.slice(end)
        parts.push(JSON.parse(json))
        return parts.at(-1)
      }
      const { done, value } = await reader.read()
      if (done) return undefined
      rest += value
    }
  }
  return {
    part,
    cancel: () => reader.cancel(),
    all: async () => {
      while (await part());
      return parts
    },
    known: () => parts.reduce(applied, {} as Record<string, unknown>),
  }
}

/** As clients do it: each entry is put where its path says, in order and without gaps. */
function applied(known: Record<string, unknown>, part: Part): Record<string, unknown> {
  if (part.data) Object.assign(known, structuredClone(part.data))
  for (const { path, items, data } of structuredClone(part.incremental ?? [])) {
    let at: unknown = known
    for (const key of items ? path.slice(0, -1) : path) at = (at as never)[key]
    if (items) expect((at as unknown[]).push(...items)).toBe((path.at(-1) as number) + items.length)
    else Object.assign(at as object, data)
  }
  return known
}

const whole = async (response: Response) => {
  const read = reading(response)
  const parts = await read.all()
  expect(parts.slice(0, -1).every(({ hasNext }) => hasNext)).toBe(true)
  expect(parts.at(-1)?.hasNext).toBe(false)
  return (read.known() as { generateCopilotResponse: Record<string, unknown> })
    .generateCopilotResponse
}

/** Where things are, in the order in which they came. */
const orderOf = (parts: Part[]) =>
  parts.flatMap(({ incremental = [] }) => incremental.map(({ path }) => path.slice(1).join('.')))

const text = (id: string, content: string[], status: object = { code: 'Success' }) => ({
  __typename: 'TextMessageOutput',
  id,
  createdAt: '1970-01-01T00:00:00.000Z',
  content,
  role: 'assistant',
  parentMessageId: null,
  status,
})

describe('a response in parts', () => {
  test('shows what is said as it is said', async () => {
    const gates = [gate(), gate(), gate()]
    const { ask, given } = executing(async function* () {
      yield [begin('m'), say('m', 'Hel')]
      await gates[0]!.opened
      yield [say('m', 'lo')]
      await gates[1]!.opened
      yield [stop('m')]
      await gates[2]!.opened
      yield [success]
    })
    const response = await ask(document, { variables: { data, properties: { key: 1 } } })
    expect(response.headers.get('content-type')).toBe('multipart/mixed; boundary="-"')
    expect(given).toMatchObject([{ threadId: 'thread-1', frontend: { actions: [] } }, { key: 1 }])
    const { part, known, all } = reading(response)
    const head = { threadId: 'thread-1', runId: 'run-1', messages: [], metaEvents: [] }
    expect(await part()).toEqual({ data: { generateCopilotResponse: head }, hasNext: true })
    const until = async (pattern: string) => {
      while (!JSON.stringify(known()).includes(pattern)) await part()
    }
    await until('"content":["Hel"]')
    gates[0]!.open()
    await until('"content":["Hel","lo"]')
    gates[1]!.open()
    await until('"status":{"code":"Success"}')
    expect(known()).toEqual({
      generateCopilotResponse: { ...head, messages: [text('m', ['Hel', 'lo'])] },
    })
    gates[2]!.open()
    expect((await all()).at(-1)?.hasNext).toBe(false)
  })

  test('sends a status after all that it is the status of', async () => {
    const { ask } = executing(
      these([begin('m'), say('m', 'a'), say('m', 'b'), say('m', 'c'), stop('m'), success]),
    )
    const parts = await reading(await ask()).all()
    expect(orderOf(parts)).toEqual([
      'messages.0',
      'messages.0.content.0',
      'messages.0.content.1',
      'messages.0.content.2',
      'messages.0',
      '',
    ])
    expect(parts.at(-1)?.hasNext).toBe(false)
  })

  test('keeps apart two messages that are said at once', async () => {
    const { ask } = executing(
      these(
        [begin('m'), say('m', 'a'), begin('n'), say('n', '1'), say('m', 'b')],
        [stop('m'), say('n', '2'), { type: 'TextMessageEnd', messageId: 'n', retracted: true }],
        [success],
      ),
    )
    const taken = { code: 'Failed', reason: 'This message was taken back.' }
    expect((await whole(await ask())).messages).toEqual([
      text('m', ['a', 'b']),
      text('n', ['1', '2'], taken),
    ])
  })

  test('has actions, results and states', async () => {
    const call = { actionExecutionId: 'c', actionName: 'weather' }
    const state = { threadId: 't', agentName: 'a', nodeName: '', runId: 'r', active: true }
    const { ask } = executing(
      these(
        [{ type: 'ActionExecutionStart', ...call, parentMessageId: 'm', at: 1 }],
        [{ type: 'ActionExecutionArgs', actionExecutionId: 'c', args: '{"city":' }],
        [
          { type: 'ActionExecutionArgs', actionExecutionId: 'c', args: '"Paris"}' },
          { type: 'ActionExecutionEnd', actionExecutionId: 'c' },
          { type: 'ActionExecutionResult', ...call, result: 'sunny', at: 2 },
          { type: 'AgentStateMessage', id: 's', ...state, running: true, state: '{}', at: 3 },
          success,
        ],
      ),
    )
    const status = { code: 'Success' }
    const at = (ms: number) => ({ createdAt: `1970-01-01T00:00:00.00${ms}Z`, status })
    const args = { name: 'weather', arguments: ['{"city":', '"Paris"}'], parentMessageId: 'm' }
    expect((await whole(await ask())).messages).toEqual([
      { __typename: 'ActionExecutionMessageOutput', id: 'c', ...at(1), ...args },
      { __typename: 'ResultMessageOutput', id: 'result-c', ...at(2), ...call, result: 'sunny' },
      {
        __typename: 'AgentStateMessageOutput',
        id: 's',
        ...at(3),
        ...state,
        running: true,
        role: 'assistant',
        state: '{}',
      },
    ])
  })

  test('has interrupts, with whole messages in them', async () => {
    const copilotKit = 'CopilotKitLangGraphInterruptEvent'
    const { ask } = executing(
      these(
        [{ type: 'MetaEvent', name: 'LangGraphInterruptEvent', value: '"Sure?"' }],
        [
          {
            type: 'MetaEvent',
            name: copilotKit,
            data: {
              value: 'v',
              messages: [
                { type: 'text', id: '1', content: 'hi', role: 'assistant', at: 0 },
                { type: 'action', id: '2', name: 'paint', args: '{}', at: 0 },
                {
                  type: 'result',
                  id: '3',
                  actionExecutionId: '2',
                  actionName: 'paint',
                  result: 'ok',
                  at: 0,
                },
              ],
            },
          },
        ],
        [success],
      ),
    )
    const type = 'MetaEvent'
    const status = { code: 'Success' }
    expect((await whole(await ask())).metaEvents).toEqual([
      {
        __typename: 'LangGraphInterruptEvent',
        type,
        name: 'LangGraphInterruptEvent',
        value: '"Sure?"',
      },
      {
        __typename: copilotKit,
        type,
        name: copilotKit,
        data: {
          value: 'v',
          messages: [
            { __typename: 'TextMessageOutput', status, content: ['hi'] },
            {
              __typename: 'ActionExecutionMessageOutput',
              status,
              name: 'paint',
              arguments: ['{}'],
            },
            { __typename: 'ResultMessageOutput', status, result: 'ok' },
          ],
        },
      },
    ])
  })

  test('shows signs of life', async () => {
    const rest = gate()
    const { ask } = executing(async function* () {
      yield []
      await rest.opened
      yield [success]
    })
    const { part, all } = reading(await ask())
    await part()
    expect(await part()).toEqual({ hasNext: true })
    rest.open()
    expect((await all()).at(-1)?.hasNext).toBe(false)
  })

  test('is a stream of events for who reads no other', async () => {
    const { ask } = executing(these([begin('m'), say('m', 'hi'), stop('m')], [success]))
    const response = await ask(document, { accept: 'text/event-stream' })
    expect(response.headers.get('content-type')).toMatch('text/event-stream')
    const frames = (await response.text()).split('\n\n').slice(0, -1)
    expect(frames.at(-1)).toBe('event: complete\ndata:')
    const parts = frames.slice(0, -1).map((frame) => {
      expect(frame).toMatch(/^event: next\ndata: {/)
      return JSON.parse(frame.slice('event: next\ndata: '.length)) as Part
    })
    const known = parts.reduce(applied, {} as Record<string, unknown>)
    expect(known.generateCopilotResponse).toMatchObject({ messages: [text('m', ['hi'])] })
  })
})

describe('a response that is whole', () => {
  const said = these([begin('m'), say('m', 'a')], [], [say('m', 'b'), stop('m')], [success])
  const expected = { messages: [text('m', ['a', 'b'])], status: { code: 'Success' } }

  test('answers a document that asks for no parts', async () => {
    const plain = document.replaceAll(/@(defer|stream)/g, '')
    const response = await executing(said).ask(plain)
    expect(response.headers.get('content-type')).toMatch('application/graphql-response+json')
    expect(await response.json()).toMatchObject({ data: { generateCopilotResponse: expected } })
  })

  test('answers a client that reads no parts', async () => {
    for (const accept of [
      'application/json',
      'multipart/mixed;q=0, application/json',
      'image/png',
    ]) {
      const response = await executing(said).ask(document, { accept })
      expect(response.headers.get('content-type')).toMatch('application/json')
      expect(await response.json()).toMatchObject({ data: { generateCopilotResponse: expected } })
    }
  })

  test('gives a field under each of its names', async () => {
    const query = `mutation($data: GenerateCopilotResponseInput!) {
      generateCopilotResponse(data: $data) {
        one: messages { ... on TextMessageOutput { content again: content } }
        two: messages { ... on TextMessageOutput { content } }
      }
    }`
    const { ask } = executing(said)
    const content = ['a', 'b']
    expect((await (await ask(query)).json()).data.generateCopilotResponse).toEqual({
      one: [{ content, again: content }],
      two: [{ content }],
    })
  })

  test('knows its status though nothing else was asked for', async () => {
    const query = `mutation($data: GenerateCopilotResponseInput!) {
      generateCopilotResponse(data: $data) { status { ... on BaseResponseStatus { code } } }
    }`
    const { ask } = executing(said)
    const { data: answer } = await (await ask(query)).json()
    expect(answer).toEqual({ generateCopilotResponse: { status: { code: 'Success' } } })
  })
})

describe('what goes wrong', () => {
  test('in a message or a response is a status', async () => {
    const details = { description: 'No.' }
    const failed = { code: 'Failed', reason: 'GUARDRAILS_VALIDATION_FAILED', details } as const
    const { ask } = executing(
      these(
        [begin('m'), { type: 'TextMessageEnd', messageId: 'm', failed: 'cut off' }, begin('n')],
        [{ type: 'ResponseEnd', status: failed }],
      ),
    )
    expect(await whole(await ask())).toMatchObject({
      messages: [
        text('m', [], { code: 'Failed', reason: 'cut off' }),
        text('n', [], { code: 'Failed', reason: 'The response failed.' }),
      ],
      status: failed,
    })
  })

  test('in the middle of events ends them with a status', async () => {
    const { ask, told } = executing(async function* () {
      yield [begin('m'), say('m', 'a')]
      throw new Error('secret')
    })
    const { messages, status } = await whole(await ask())
    expect(messages).toEqual([text('m', ['a'], { code: 'Failed', reason: 'The response failed.' })])
    expect(status).toEqual({
      code: 'Failed',
      reason: 'UNKNOWN_ERROR',
      details: {
        description: 'It failed.',
        originalError: { message: 'It failed.', code: 'UNKNOWN', severity: 'critical' },
      },
    })
    expect(told).toEqual([['secret', ['generateCopilotResponse']]])
  })

  test('when events break off is a status too', async () => {
    const { status } = await whole(await executing(these([begin('m')])).ask())
    expect(status).toMatchObject({ code: 'Failed', reason: 'MESSAGE_STREAM_INTERRUPTED' })
  })

  test('before there is a response is told as it may be told, with status 200', async () => {
    const { ask, told } = executing(these())
    const query = '{ loadAgentState(data: { threadId: "t", agentName: "a" }) { state } }'
    const response = await ask(query)
    expect(response.status).toBe(200)
    expect(await response.json()).toEqual({
      data: null,
      errors: [
        {
          message: 'It failed.',
          locations: [{ line: 1, column: 3 }],
          path: ['loadAgentState'],
          extensions: { code: 'UNKNOWN', severity: 'critical' },
        },
      ],
    })
    expect(told).toEqual([['secret', ['loadAgentState']]])
  })

  test('in values of ours is told, and not shown', async () => {
    const { ask, told } = executing(these([begin('m'), say('m', null as never)], [success]))
    const parts = JSON.stringify(await reading(await ask()).all())
    expect(parts).toContain('"message":"It failed."')
    expect(parts).not.toContain('Cannot return null')
    expect(told).toHaveLength(1)
  })

  test('in what is asked is a 400 that says why', async () => {
    const { ask, given } = executing(these([success]))
    const wrong: [string, object, RegExp][] = [
      ['{ nope }', {}, /Cannot query field/],
      ['{ hello', {}, /Syntax Error/],
      [document, { data: { ...data, bogus: 1 } }, /bogus/],
      [document, { data: { ...data, metadata: { requestType: 'Nope' } } }, /Nope/],
      [document, { data, properties: [] }, /A JSON object is needed/],
      ['mutation { a: __typename b: nope c: nope }', {}, /one mutation/],
    ]
    for (const [query, variables, message] of wrong) {
      const response = await ask(query, { variables })
      expect([variables, response.status]).toEqual([variables, 400])
      const { errors } = (await response.json()) as { errors: { message: string }[] }
      expect(errors[0]?.message).toMatch(message)
    }
    expect(given).toEqual([])
  })
})

describe('the pace of the reader', () => {
  test('is the pace of the source', async () => {
    let pulled = 0
    const { ask } = executing(async function* () {
      yield [begin('m')]
      for (; pulled < 100_000; pulled++) yield [say('m', 'x'.repeat(100))]
      yield [stop('m'), success]
    })
    const { part, cancel } = reading(await ask())
    await part()
    for (let turn = 0; turn < 50; turn++) await new Promise(setImmediate)
    expect(pulled).toBeLessThan(10)
    for (let read = 0; read < 100; read++) await part()
    expect(pulled).toBeGreaterThan(50)
    expect(pulled).toBeLessThan(200)
    await cancel()
  })

  test('ends with the reader: the source hears of it and is left', async () => {
    for (const leave of [
      'cancels the body',
      'closes the connection',
      'closes while whole',
    ] as const) {
      const left = gate()
      const { ask, told } = executing(async function* (signal) {
        try {
          yield [begin('m')]
          await new Promise((_, reject) =>
            signal.addEventListener('abort', () => reject(signal.reason)),
          )
        } finally {
          left.open()
        }
      })
      const connection = new AbortController()
      const accept = leave === 'closes while whole' ? 'application/json' : anything
      const answer = ask(document, { signal: connection.signal, accept })
      if (leave === 'closes while whole') await new Promise((resolve) => setTimeout(resolve, 20))
      else {
        const { part, cancel, all } = reading(await answer)
        await part()
        await part()
        if (leave === 'cancels the body') await cancel()
        connection.abort()
        if (leave === 'closes the connection') expect((await all()).at(-1)?.hasNext).toBe(false)
      }
      connection.abort()
      await left.opened
      await answer // and nothing is thrown at whoever serves
      expect(told).toEqual([])
    }
  })

  test('matters to nobody once all is there', async () => {
    let heard = false
    const { ask } = executing(async function* (signal) {
      signal.addEventListener('abort', () => {
        heard = true
      })
      yield [success]
    })
    const connection = new AbortController()
    await whole(await ask(document, { signal: connection.signal }))
    connection.abort()
    expect(heard).toBe(false)
  })
})

describe('by address', () => {
  const get = async (query: string, accept = '*/*') => {
    const { resolvers, tell } = executing(these([success]))
    const { execute } = graphqlExecutor(resolvers, { introspection: true, tell })
    const request = new Request(`http://127.0.0.1/copilotkit${query}`, { headers: { accept } })
    const response = await execute(request, undefined, asked(request))
    return [response.status, response.headers.get('allow'), await response.json()]
  }

  test('queries are answered, and mutations are not', async () => {
    expect(await get('?query={hello}')).toEqual([200, null, { data: { hello: 'Hello World' } }])
    expect(await get(`?query=${encodeURIComponent(document)}`)).toMatchObject([405, 'POST', {}])
    const [status, allow, body] = await get('')
    expect([status, allow]).toEqual([200, 'GET, POST'])
    expect(body).toMatchObject({ errors: [{ message: 'Must provide query string.' }] })
  })
})

test('what is no JSON object is refused', async () => {
  const { resolvers, tell } = executing(these([success]))
  const { execute } = graphqlExecutor(resolvers, { introspection: true, tell })
  const statusOf = async (body: unknown) => {
    const request = new Request('http://127.0.0.1/copilotkit', { method: 'POST', body: 'x' })
    await request.text() // as whoever parsed the body has done
    return (await execute(request, body, asked(request))).status
  }
  const batch = [{ query: '{hello}' }, { query: '{hello}' }]
  expect(await Promise.all([undefined, batch, 'text', {}].map(statusOf))).toEqual([
    415, 400, 400, 200,
  ])
})

test('questions about the schema are answered, unless they are not wanted', async () => {
  const { ask } = executing(these())
  const query = getIntrospectionQuery()
  expect((await (await ask(query)).json()).data.__schema.types.length).toBeGreaterThan(60)
  const refused = await ask(query, { introspection: false })
  expect(refused.status).toBe(400)
  expect((await refused.json()).errors[0].message).toMatch('Leave out __schema')
  const names = await ask('{ __typename availableAgents { __typename agents { name } } }', {
    introspection: false,
  })
  expect((await names.json()).data.availableAgents.agents).toEqual([{ name: 'default' }])
})

function gate() {
  let open!: () => void
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { open, opened }
}
