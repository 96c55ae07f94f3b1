import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { Agent } from '../../src/core/agent.ts'
import { AgentError, RuntimeError } from '../../src/core/errors.ts'
import type { Tool } from '../../src/core/tool.ts'
import { call, scriptedModel, text } from '../../src/models/scripted.ts'
import { agui } from '../support/agui.ts'
import { generate } from '../support/graphql.ts'
import { serve } from '../support/serve.ts'
import { look, send, story } from '../support/story.ts'
import { find, names, problem, said, seedFrames, tools } from '../support/tools.ts'

function fails(): never {
  throw new Error('no such day')
}

function circle(): unknown {
  const one: Record<string, unknown> = {}
  one.self = one
  return one
}

describe('errors', () => {
  test('of a tool become its result, and the model decides (seed 7.1)', async () => {
    const box = tools()
    const broken = { ...box.look, run: () => Promise.reject(new Error('no such sea')) }
    const model = scriptedModel([[look('1', 'sea')], [text('I could not look.')]])
    const server = await serve({ model, tools: [broken], builtIns: false })
    const frames = await (await server.start('c', 'the sea?')).rest()
    expect(find(frames, 'tool_result').tool_output).toBe('Error executing tool: no such sea')
    expect(find(frames, 'interaction_complete').status).toBe('COMPLETED')
    expect(said(model.requests[1]).at(-1)).toBe('tool: Error executing tool: no such sea')
  })

  test.each([
    ['a circle', circle, /circular/i],
    ['a big number', () => 5n, /BigInt/],
    ['nothing', () => undefined, /^tool: $/],
    ['a function', () => () => 1, /^tool: $/],
  ])('a result that is %s ends as a result too', async (_, result, heard) => {
    const box = tools()
    const odd = { ...box.look, run: async () => result() }
    const model = scriptedModel([[look('1', 'sea')], [text('Odd.')]])
    const server = await serve({ model, tools: [odd], builtIns: false })
    const frames = await (await server.start('c', 'the sea?')).rest()
    expect(find(frames, 'interaction_complete').status).toBe('COMPLETED')
    expect(said(model.requests[1]).at(-1)).toMatch(heard)
  })

  test('a tool whose sentence and preview fail is asked about all the same', async () => {
    const box = tools()
    const fails = () => {
      throw new Error('no words')
    }
    const shy = { ...box.send, describe: fails, preview: fails as () => Promise<never> }
    const model = scriptedModel([[send('1')], [text('Done.')]])
    const server = await serve({ model, tools: [shy], builtIns: false })
    const stream = await server.start('c', 'pay')
    const asked = find(await stream.until('approval_required'), 'approval_required')
    expect(asked.card.title).toBe('Run send')
    stream.leave()
  })

  test.each([
    ['a tool that is not there', call('1', 'fly', {}), /There is no tool named fly/],
    ['an input that does not fit', call('1', 'look', { at: 3 }), /not valid\. at: /],
    [
      'an input that is not JSON',
      { type: 'call', callId: '1', name: 'look', input: '{"at' } as const,
      /not valid JSON/,
    ],
  ])('the model hears of %s', async (_, made, heard) => {
    const server = await story([[made], [text('Sorry.')]])
    const frames = await (await server.start('c', 'go')).rest()
    expect(find(frames, 'tool_result')).toMatchObject({ not_run: true })
    expect(names(frames)).not.toContain('tool_call')
    expect(said(server.model.requests[1]).at(-1)).toMatch(heard)
    expect(server.looked).toEqual([])
  })

  test('of the agent end the run as failed, and retry takes it up where it failed (seed 7.2)', async () => {
    const server = await story([
      [look('1', 'sea')],
      [text('It is '), new RuntimeError('model_request', 'The model does not like this.')],
      [text('It is blue.')],
    ])
    const stream = await server.start('c', 'the sea?')
    const frames = await stream.rest()
    const id = stream.response.headers.get('x-interaction-id')!
    expect(names(seedFrames(frames)).slice(-3)).toEqual([
      'retracted',
      'error',
      'interaction_complete',
    ])
    expect(find(frames, 'error')).toEqual({
      error: 'The model does not like this.',
      code: 'model_request',
      retryable: false,
    })
    expect(frames.at(-1)?.data).toEqual({ interaction_id: id, status: 'FAILED' })
    expect(await server.chat('c')).toMatchObject({
      interactions: [{ status: 'FAILED', error: { code: 'model_request' } }],
    })

    const retried = await (await server.open('POST', `/chats/c/interactions/${id}/retry`)).rest()
    expect(names(seedFrames(retried))).toEqual(['answer', 'interaction_complete'])
    expect(retried.at(-1)?.data).toEqual({ interaction_id: id, status: 'COMPLETED' })
    expect(server.looked).toEqual(['sea'])
    expect(said(server.model.requests[2])).toEqual(said(server.model.requests[1]))
    const again = await server.request('POST', `/chats/c/interactions/${id}/retry`)
    expect(await problem(again)).toMatchObject({ http: 409, code: 'run_not_failed' })

    const replay = await (await server.join('c', id)).rest()
    expect(replay.at(-1)?.data.status).toBe('COMPLETED')
    expect(names(replay)).toContain('answer')
    expect(names(replay).filter((name) => name === 'interaction_complete')).toHaveLength(1)
    expect(await server.chat('c')).toMatchObject({ interactions: [{ status: 'COMPLETED' }] })
  })

  test.each<[string, z.ZodType, RegExp]>([
    [
      'throws',
      z.string().transform(fails),
      /^tool: The input of look is not valid\. .*no such day/,
    ],
    ['waits', z.string().refine(async () => true), /is not valid\. .*Promise/],
  ])('of a schema that %s are told to the model', async (_, at, heard) => {
    const { look: plain, looked } = tools()
    const odd = { ...plain, schema: z.strictObject({ at }) as Tool['schema'] }
    const model = scriptedModel([[look('1', 'sea')], [text('Odd.')]])
    const told: string[] = []
    const hear = (about: object, message: string) =>
      void told.push(`${message}: ${(about as { tool?: string }).tool}`)
    const log = { info() {}, warn: hear, error: hear }
    const server = await serve({ model, tools: [odd], builtIns: false }, { log })
    const frames = await (await server.start('c', 'the sea?')).rest()
    expect(find(frames, 'interaction_complete').status).toBe('COMPLETED')
    expect(said(model.requests[1]).at(-1)).toMatch(heard)
    expect(told).toContain('the schema of a tool failed: look')
    expect(looked).toEqual([])
  })

  test('of a question that an agent does not wait for end nothing', async () => {
    const unheard: unknown[] = []
    const hear = (error: unknown) => void unheard.push(error)
    process.on('unhandledRejection', hear)
    const hasty: Agent = {
      name: 'hasty',
      // biome-ignore lint/correctness/useYield: it only asks
      async *run(ctx) {
        void ctx.ask({ key: 'k', kind: 'input', title: 'Well?' })
      },
    }
    const server = await serve({ model: scriptedModel([]), agents: [hasty] })
    const frames = await (await server.start('c', 'go')).rest()
    process.off('unhandledRejection', hear)
    expect(find(frames, 'interaction_complete').status).toBe('COMPLETED')
    expect(unheard).toEqual([])
  })

  test('that are nobody’s business stay in the log', async () => {
    const server = await story([[new Error('password is hunter2')]])
    const frames = await (await server.start('c', 'go')).rest()
    expect(find(frames, 'error')).toMatchObject({
      error: 'The agent failed.',
      code: 'agent_failed',
    })
    expect(JSON.stringify([frames, await server.chat('c')])).not.toContain('hunter2')
  })

  test('an AgentError shows its own message on every wire, and its cause on none', async () => {
    const message = 'Name an account, like ACC-001.'
    const picky: Agent = {
      name: 'picky',
      supportsRetry: true,
      // biome-ignore lint/correctness/useYield: it fails before it says anything
      async *run() {
        throw new AgentError(message, { cause: new Error('password is hunter2') })
      },
    }
    const server = await serve({ model: scriptedModel([]), agents: [picky] })
    const frames = await (await server.start('c', 'go')).rest()
    expect(find(frames, 'error')).toMatchObject({ error: message, code: 'agent_failed' })
    expect(names(frames)).not.toContain('retrying') // nothing but another message would help
    const messages = [{ id: 'm', role: 'user', content: 'go' }]
    const events = await agui(server.url, { threadId: 'a', messages })
    expect(events.at(-1)).toMatchObject({ type: 'RUN_ERROR', message, code: 'agent_failed' })
    const answer = await generate(server.url, 'm', 'go', { threadId: 'g' })
    expect(answer.status).toMatchObject({ details: { description: message } })
    const body = { session_id: 's', messages: [{ role: 'user', content: 'go' }] }
    const told = await (await server.open('POST', '/copilotkit/chat', body)).rest()
    expect(find(told, 'agent_error').data).toMatchObject({ error_message: message })
    const outline = await (await server.request('GET', '/copilotkit/threads/c/outline')).text()
    expect(outline).toContain(message)
    const all = JSON.stringify([frames, events, answer, told, await server.chat('c'), outline])
    expect(all).not.toContain('hunter2')
  })

  test('of the provider that pass are tried again, visibly, and no text is shown twice', async () => {
    const server = await story([[text('Hel'), new RuntimeError('stream_cut')], [text('Hello.')]], {
      retry: { first: 1 },
    })
    const frames = await (await server.start('c', 'hi')).rest()
    expect(names(frames)).toEqual([
      'interaction_started',
      'answer_delta',
      'retracted',
      'retrying',
      'answer_delta',
      'answer',
      'interaction_complete',
    ])
    const [first, second] = frames.filter(({ event }) => event === 'answer_delta')
    expect(find(frames, 'retracted').ids).toEqual([first!.data.message_id])
    expect(second!.data.message_id).not.toBe(first!.data.message_id)
    expect(find(frames, 'retrying')).toMatchObject({ attempt: 2, code: 'stream_cut' })
  })
})
