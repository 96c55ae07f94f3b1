import { expect, test } from 'vitest'
import { converse, stateOf } from '../../../test/support/graphs.ts'
import { serve } from '../../../test/support/serve.ts'
import { names } from '../../../test/support/tools.ts'
import type { AgentContext, AgentEvent } from '../../core/agent.ts'
import { textOf } from '../../core/messages.ts'
import { readFenced } from '../../lib/fenced.ts'
import { workflow } from '../workflow/agent.ts'
import { wrapped } from './agent.ts'
import type { EventAgent, WrappedContext, WrappedEvent } from './events.ts'

const call = { tool_name: 'crm', tool_args: { id: 1 }, tool_call_id: 'call_1' }

/** An object as others have them: it knows nothing of us. */
function scout(resumes = false) {
  const given: WrappedContext[] = []
  async function* end({ approval_response }: WrappedContext) {
    const output = { found: true, status: approval_response?.status }
    yield { event: 'agent_completed', data: { output } }
  }
  const object: EventAgent = {
    async *execute_with_events(context) {
      given.push(context)
      yield { event: 'agent_started', data: {} }
      yield { event: 'thinking', data: { content: 'Where is it?' } }
      yield { event: 'tool_call', data: call }
      yield { event: 'tool_result', data: { ...call, result: { name: 'Acme' }, success: true } }
      yield { event: 'agent_stream', data: { content: 'Found ' } }
      yield { event: 'agent_stream', data: { content: 'it.' } }
      yield { event: 'approval_required', data: { recommendation: { do: 'call' }, title: 'Call?' } }
      yield* end(context)
    },
    ...(resumes && {
      async *resume_with_events(context: WrappedContext) {
        given.push(context)
        yield* end(context)
      },
    }),
  }
  return { object, given }
}

test.each([false, true])('an object with events is an agent (resumes: %s)', async (resumes) => {
  const { object, given } = scout(resumes)
  const server = await serve({ agents: [wrapped(object, { name: 'scout' })] })
  const { status, frames, asked } = await converse(server, 'c', 'go', () => ({ approved: true }))
  expect(status).toBe('COMPLETED')
  expect(asked.map(({ card }) => card.title)).toEqual(['Call?'])
  const told = names(frames).filter((name) => !name.endsWith('_delta') && name !== 'governor')
  expect(told, 'nothing is told twice').toEqual([
    'interaction_started',
    'thinking',
    'tool_result', // the call itself was not made by us
    'answer',
    'approval_required',
    'approved',
    'answer',
    'interaction_complete',
  ])
  const said = frames.filter(({ event }) => event === 'answer').map(({ data }) => data.content)
  expect(said).toEqual(['Found it.', '{"found":true,"status":"approved"}'])
  expect(given.length).toBe(2)
  expect(given[1]!.approval_responses).toEqual([{ status: 'approved', reason: null }])
})

test('is a step of a workflow, and its question carries the way to it', async () => {
  const { object, given } = scout()
  const steps = [{ agent: wrapped(object, { name: 'scout' }), outputKey: 'found' }]
  const begin = () => ({ account_id: 'A' })
  const flow = workflow({ name: 'flow', begin, steps })
  const server = await serve({ agents: [flow] })
  const { status } = await converse(server, 'c', 'go', () => ({ approved: false }))
  expect(status).toBe('COMPLETED')
  expect(await stateOf(server, 'c')).toMatchObject({ found: { found: true, status: 'rejected' } })
  expect(given[0]!.context).toMatchObject({ user_message: 'go', step: 1 })
  const raised = (await server.journal('c')).find(({ kind }) => kind === 'ask.raised')
  expect(raised).toMatchObject({ body: { ask: { path: 'found', agent: 'scout' } } })
})

test('twice in one group, each is asked its own question', async () => {
  const parallel = ['a', 'b'].map((outputKey) => {
    return { agent: wrapped(scout().object, { name: `scout ${outputKey}` }), outputKey }
  })
  const server = await serve({ agents: [workflow({ name: 'flow', steps: [{ parallel }] })] })
  let n = 0
  const { asked } = await converse(server, 'c', 'go', () => ({ approved: ++n === 1 }))
  expect(asked.length).toBe(2)
  const { a, b } = (await stateOf(server, 'c')) as Record<string, { status: string }>
  expect([a!.status, b!.status].sort()).toEqual(['approved', 'rejected'])
})

test('that says it failed, has', async () => {
  const object: EventAgent = {
    async *executeWithEvents() {
      yield { event: 'agent_error', data: { error_message: 'no line' } }
    },
  }
  const server = await serve({ agents: [wrapped(object, { name: 'scout' })] })
  const { status, frames } = await converse(server, 'c', 'go', () => undefined)
  expect(status).toBe('FAILED')
  expect(frames.find(({ event }) => event === 'error')!.data.error).toBe('no line')
})

const outputOf = async (...events: WrappedEvent[]) => {
  const object: EventAgent = {
    async *execute_with_events() {
      yield* events
    },
  }
  const after = {
    name: 'after',
    async *run(ctx: AgentContext): AsyncGenerator<AgentEvent> {
      const message = { id: ctx.newId('msg'), role: 'assistant' as const, parts: [] }
      yield {
        type: 'message',
        message: { ...message, meta: { output: textOf(ctx.messages()[0]!) } },
      }
    },
  }
  const steps = [
    { agent: wrapped(object, { name: 'scout' }), outputKey: 'found' },
    { agent: after, inputKeys: ['found'], outputKey: 'after' },
  ]
  const server = await serve({ agents: [workflow({ name: 'flow', steps })] })
  const { frames } = await converse(server, 'c', 'go', () => undefined)
  const answers = frames.filter(({ event }) => event === 'answer').map(({ data }) => data.content)
  const { found, after: given } = (await stateOf(server, 'c')) as Record<string, unknown>
  return { texts: answers.slice(0, -1), found, given: readFenced(String(given)) } // without the summary
}

const streamed = (content: string) => ({ event: 'agent_stream', data: { content } })
const completed = (output: unknown) => ({ event: 'agent_completed', data: { output } })

test.each<[string, WrappedEvent[], string[], unknown]>([
  [
    'the streamed text',
    [streamed('Hello '), streamed('world.'), completed('Hello world.')],
    ['Hello world.'],
    'Hello world.',
  ],
  [
    'the streamed text without its last line break',
    [streamed('Hello.\n'), completed('Hello.')],
    ['Hello.\n'],
    'Hello.',
  ],
  ['the streamed JSON', [streamed('{"a":1}'), completed({ a: 1 })], ['{"a":1}'], { a: 1 }],
  [
    'the streamed text, after another event',
    [streamed('Hello.'), { event: 'metrics', data: {} }, completed('Hello.')],
    ['Hello.'],
    'Hello.',
  ],
  ['another text', [streamed('Hello.'), completed('Goodbye.')], ['Hello.', 'Goodbye.'], 'Goodbye.'],
])(
  'an output that is %s is sent once, and the next step gets it',
  async (_, events, texts, output) => {
    const end = await outputOf(...events)
    expect(end.texts).toEqual(texts)
    expect(end.found).toEqual(output)
    expect(end.given).toMatchObject({ found: output })
  },
)

test('an output that repeats the text before an approval is not sent again when the object runs from its start', async () => {
  const object: EventAgent = {
    async *execute_with_events() {
      yield streamed('Found it.')
      yield { event: 'approval_required', data: { recommendation: { do: 'call' } } }
      yield completed('Found it.')
    },
  }
  const steps = [{ agent: wrapped(object, { name: 'scout' }), outputKey: 'found' }]
  const server = await serve({ agents: [workflow({ name: 'flow', steps })] })
  const { frames } = await converse(server, 'c', 'go', () => ({ approved: true }))
  const texts = frames.filter(({ event }) => event === 'answer').map(({ data }) => data.content)
  expect(texts.filter((text) => text === 'Found it.')).toHaveLength(1)
  expect(await stateOf(server, 'c')).toMatchObject({ found: 'Found it.' })
})
