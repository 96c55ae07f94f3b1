import fc from 'fast-check'
import { GraphQLError } from 'graphql'
import { describe, expect, test } from 'vitest'
import { Encoder } from './encoder.ts'
import type { Generated, RuntimeEvent } from './events.ts'
import { graphqlExecutor } from './executor.ts'

/** What the clients ask for, every `__typename` included. */
const document = `mutation($data: GenerateCopilotResponseInput!) {
  generateCopilotResponse(data: $data) {
    threadId runId
    extensions { openaiAssistantAPI { runId threadId __typename } __typename }
    ... on CopilotResponse @defer {
      status {
        ... on BaseResponseStatus { code __typename }
        ... on FailedResponseStatus { reason details __typename }
        __typename
      }
      __typename
    }
    messages @stream { ...Whole ...Text ...Action }
    metaEvents @stream {
      ... on LangGraphInterruptEvent { type name value __typename }
      ... on CopilotKitLangGraphInterruptEvent {
        type name
        data { value messages { ...Whole ...TextAtOnce ...ActionAtOnce } __typename }
        __typename
      }
      __typename
    }
    __typename
  }
}
fragment Whole on BaseMessageOutput {
  __typename id createdAt
  ... on BaseMessageOutput @defer {
    status {
      ... on SuccessMessageStatus { code __typename }
      ... on FailedMessageStatus { code reason __typename }
      __typename
    }
    __typename
  }
  ... on ResultMessageOutput { result actionExecutionId actionName }
  ... on AgentStateMessageOutput {
    threadId state running agentName nodeName runId active role
  }
}
fragment Text on TextMessageOutput { content @stream role parentMessageId }
fragment Action on ActionExecutionMessageOutput { name arguments @stream parentMessageId }
fragment TextAtOnce on TextMessageOutput { content role parentMessageId }
fragment ActionAtOnce on ActionExecutionMessageOutput { name arguments parentMessageId }`

const text = fc.string({ unit: 'binary' })
const at = 1_700_000_000_000

/** The life of one message; those of several are shuffled into each other. */
const life = fc.oneof(
  fc.record({ kind: fc.constant('text'), texts: fc.array(text), failed: fc.boolean() }),
  fc.record({ kind: fc.constant('action'), texts: fc.array(text), failed: fc.boolean() }),
  fc.record({ kind: fc.constant('result'), texts: fc.tuple(text), failed: fc.constant(false) }),
  fc.record({ kind: fc.constant('state'), texts: fc.tuple(text), failed: fc.constant(false) }),
)

function eventsOf(
  id: string,
  { kind, texts, failed }: { kind: string; texts: string[]; failed: boolean },
) {
  const end = failed ? { failed: `${id} failed` } : {}
  if (kind === 'text') {
    return [
      { type: 'TextMessageStart', messageId: id, at },
      ...texts.map((content) => ({ type: 'TextMessageContent', messageId: id, content })),
      { type: 'TextMessageEnd', messageId: id, ...end },
    ]
  }
  if (kind === 'action') {
    const actionExecutionId = id
    return [
      {
        type: 'ActionExecutionStart',
        actionExecutionId,
        actionName: 'paint',
        parentMessageId: 'm',
        at,
      },
      ...texts.map((args) => ({ type: 'ActionExecutionArgs', actionExecutionId, args })),
      { type: 'ActionExecutionEnd', actionExecutionId, ...end },
    ]
  }
  const [value = ''] = texts
  if (kind === 'result') {
    const about = { actionExecutionId: id, actionName: 'paint' }
    return [{ type: 'ActionExecutionResult', ...about, result: value, at }]
  }
  const about = { threadId: 't', agentName: 'a', nodeName: 'n', runId: 'r' }
  const state = JSON.stringify({ value })
  return [{ type: 'AgentStateMessage', id, ...about, active: true, running: true, state, at }]
}

const script = fc
  .record({
    lives: fc.array(life, { maxLength: 6 }),
    turns: fc.infiniteStream(fc.nat(20)),
    cuts: fc.infiniteStream(fc.nat(4)),
    interrupts: fc.array(text, { maxLength: 2 }),
    fails: fc.boolean(),
  })
  .map(({ lives, turns, cuts, interrupts, fails }) => {
    const queues = lives.map((one, i) => eventsOf(`message-${i}`, one))
    const events: unknown[] = []
    while (queues.some((queue) => queue.length > 0)) {
      const open = queues.filter((queue) => queue.length > 0)
      events.push(open[turns.next().value! % open.length]!.shift())
    }
    for (const value of interrupts) {
      events.push({ type: 'MetaEvent', name: 'LangGraphInterruptEvent', value })
      const messages = [
        { type: 'text', id: 'i', content: value, role: 'assistant', at },
        { type: 'action', id: 'j', name: 'paint', args: '{}', at },
        { type: 'result', id: 'k', actionExecutionId: 'j', actionName: 'paint', result: value, at },
      ]
      const name = 'CopilotKitLangGraphInterruptEvent'
      events.push({ type: 'MetaEvent', name, data: { value, messages } })
    }
    const failed = { code: 'Failed', reason: 'UNKNOWN_ERROR', details: { description: 'no' } }
    events.push({ type: 'ResponseEnd', status: fails ? failed : { code: 'Success' } })
    const batches: RuntimeEvent[][] = [[]]
    for (const event of events as RuntimeEvent[]) {
      batches.at(-1)!.push(event)
      if (cuts.next().value === 0) batches.push([])
    }
    return batches.filter((batch) => batch.length > 0)
  })

const generatedFrom = (batches: RuntimeEvent[][]): Generated => ({
  threadId: 'thread-1',
  runId: 'run-1',
  extensions: { openaiAssistantAPI: { runId: 'r' } },
  async *events() {
    yield* batches
  },
})

const data = { metadata: {}, messages: [], frontend: { actions: [] } }

async function executed(batches: RuntimeEvent[][]): Promise<string> {
  const never = async () => {
    throw new Error('not asked for')
  }
  const generate = async () => generatedFrom(batches)
  const resolvers = { availableAgents: never, loadAgentState: never, generate }
  const tell = (error: unknown) => new GraphQLError(String(error))
  const { execute } = graphqlExecutor(resolvers, { introspection: true, tell })
  const headers = { accept: 'multipart/mixed', 'content-type': 'application/json' }
  const request = new Request('http://127.0.0.1/', { method: 'POST', headers })
  const caller = { tenant: 't', user: 'u', roles: [], wire: 'graphql' }
  const body = { query: document, variables: { data } }
  return await (await execute(request, body, { caller, request })).text()
}

function encoded(batches: RuntimeEvent[][]): string {
  const encoder = new Encoder()
  return encoder.head(generatedFrom(batches)) + batches.map((one) => encoder.parts(one)).join('')
}

interface Part {
  data?: unknown
  hasNext: boolean
  incremental?: { items?: unknown[]; data?: object; path: (string | number)[] }[]
}

/** The parts of a body; each says how many bytes it has. */
function partsOf(body: string): Part[] {
  const bytes = Buffer.from(body)
  const parts: Part[] = []
  expect(body.startsWith('\r\n---')).toBe(true)
  expect(body.endsWith('\r\n-----\r\n')).toBe(true)
  for (let at = bytes.indexOf('\r\n\r\n'); at >= 0; at = bytes.indexOf('\r\n\r\n', at)) {
    const head = bytes.subarray(0, at).toString()
    const length = Number(/Content-Length: (\d+)$/.exec(head)![1])
    parts.push(JSON.parse(bytes.subarray(at + 4, at + 4 + length).toString()))
    at += 4 + length
    expect(bytes.subarray(at, at + 5).toString()).toBe('\r\n---')
  }
  return parts
}

/** What a client has in the end. */
function decoded(body: string): unknown {
  const [first, ...rest] = partsOf(body)
  const result = first!.data as Record<string, unknown>
  for (const { incremental = [] } of rest) {
    for (const { items, data: fields, path } of incremental) {
      // biome-ignore lint/suspicious/noExplicitAny: JSON is followed by its path
      let place: any = result
      for (const step of path.slice(0, items ? -1 : undefined)) place = place[step]
      if (fields) Object.assign(place, fields)
      for (const [i, item] of (items ?? []).entries()) {
        const index = Number(path.at(-1)) + i
        expect(index).toBeLessThanOrEqual(place.length) // no gaps
        place[index] = item
      }
    }
  }
  expect(rest.map(({ hasNext }) => hasNext).lastIndexOf(true)).toBe(rest.length - 2)
  return JSON.parse(JSON.stringify(result), (key, value: unknown) =>
    key === 'content' || key === 'arguments' ? (value as string[]).join('') : value,
  )
}

describe('the encoder', () => {
  test('gives what the executor gives', async () => {
    await fc.assert(
      fc.asyncProperty(script, async (batches) => {
        expect(decoded(encoded(batches))).toEqual(decoded(await executed(batches)))
      }),
      { numRuns: 60 },
    )
  })

  test('writes over what is taken back, and leaves a call without its name', () => {
    const start = {
      type: 'ActionExecutionStart',
      actionExecutionId: 'c',
      actionName: 'paint',
      at,
    } as const
    const args = { type: 'ActionExecutionArgs', actionExecutionId: 'c', args: '{"color"' } as const
    const gone = { failed: 'It was cut off.', retracted: true } as const
    const body = encoded([
      [{ type: 'TextMessageStart', messageId: 'm', at }],
      [{ type: 'TextMessageContent', messageId: 'm', content: 'Half a' }],
      [{ type: 'TextMessageContent', messageId: 'm', content: ' sentence' }, start, args],
      [{ type: 'TextMessageEnd', messageId: 'm', ...gone }],
      [{ type: 'ActionExecutionEnd', actionExecutionId: 'c', ...gone }],
      [{ type: 'ResponseEnd', status: { code: 'Success' } }],
    ])
    const failed = { status: { code: 'Failed', reason: 'It was cut off.' } }
    expect(decoded(body)).toMatchObject({
      generateCopilotResponse: {
        messages: [
          { id: 'm', content: '', ...failed },
          { id: 'c', name: '', arguments: '', ...failed },
        ],
      },
    })
  })
})
