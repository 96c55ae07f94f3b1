import { describe, expect, test } from 'vitest'
import type { Agent, AgentContext, AgentEvent } from '../../src/core/agent.ts'
import { transcript } from '../support/chats.ts'
import { serve } from '../support/serve.ts'

/** Fails so often, each time in the middle of a sentence, and then says it. */
function shaky(failures: number, supportsRetry: boolean): Agent & { runs: number } {
  const agent = {
    name: 'shaky',
    supportsRetry,
    runs: 0,
    async *run(ctx: AgentContext): AsyncGenerator<AgentEvent> {
      agent.runs++
      const id = ctx.newId('msg')
      yield { type: 'piece', piece: { kind: 'text', id, text: 'It is ' } }
      if (agent.runs <= failures) throw new Error('a bug')
      const parts = [{ type: 'text' as const, text: 'It is done.' }]
      yield { type: 'message', message: { id, role: 'assistant', parts } }
    },
  }
  return agent
}

const retry = { first: 5 }

describe('an agent that fails', () => {
  test('is run again where it says that this is worth it, and what it had begun is taken back', async () => {
    const agent = shaky(2, true)
    const server = await serve({ agents: [agent], retry })
    const frames = await (await server.start('chat', 'go')).rest()
    const retries = frames.filter(({ event }) => event === 'retrying')
    expect(retries.map(({ data }) => data.attempt)).toEqual([2, 3])
    expect(retries[0]!.data).toMatchObject({ code: 'agent_failed', agent: 'shaky' })
    expect([...transcript(frames).values()]).toEqual(['It is done.'])
    expect(frames.at(-1)!.data.status).toBe('COMPLETED')
  })

  test('is given up after as many attempts as any other', async () => {
    const agent = shaky(9, true)
    const server = await serve({ agents: [agent], retry })
    const frames = await (await server.start('chat', 'go')).rest()
    expect(frames.at(-1)!.data.status).toBe('FAILED')
    expect(agent.runs).toBe(3)
  })

  test('is not run again otherwise', async () => {
    const agent = shaky(1, false)
    const server = await serve({ agents: [agent], retry })
    expect((await (await server.start('chat', 'go')).rest()).at(-1)!.data.status).toBe('FAILED')
    expect(agent.runs).toBe(1)
  })

  test('and is cancelled while it waits stays cancelled (I7)', async () => {
    const agent = shaky(9, true)
    const server = await serve({ agents: [agent], retry: { first: 60_000 } })
    const stream = await server.start('chat', 'go')
    await stream.until('retrying')
    await server.cancel('chat', stream.response.headers.get('x-interaction-id')!)
    expect((await stream.rest()).at(-1)!.data.status).toBe('CANCELLED')
    expect(agent.runs).toBe(1)
  })
})
