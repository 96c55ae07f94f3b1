import { describe, expect, test } from 'vitest'
import type { Agent, AgentContext, AgentEvent } from '../../src/core/agent.ts'
import { scriptedModel, text } from '../../src/models/scripted.ts'
import { agui } from '../support/agui.ts'
import { serve } from '../support/serve.ts'
import { temporaryDirectory } from '../support/server.ts'

/** Keeps a note for each run, and says which it finds. */
const keeper: Agent = {
  name: 'keeper',
  async *run(ctx: AgentContext): AsyncGenerator<AgentEvent> {
    const found = ctx.kept().map(({ data }) => data)
    const last = ctx.messages().at(-1)!.parts[0]
    ctx.keep(ctx.newId('point'), last?.type === 'text' ? last.text : '')
    const said = { found, given: ctx.given()?.value ?? null }
    const parts = [{ type: 'text' as const, text: JSON.stringify(said) }]
    yield { type: 'message', message: { id: ctx.newId('msg'), role: 'assistant', parts } }
  },
}

const heard = async (stream: {
  rest(): Promise<{ event: string; data: { content?: string } }[]>
}) => {
  const answer = (await stream.rest()).find(({ event }) => event === 'answer')
  return JSON.parse(answer!.data.content!)
}

describe('an agent with checkpoints of its own', () => {
  test('finds what it kept on its branch, after a restart too, and not what an edit left', async () => {
    const { path, remove } = await temporaryDirectory()
    const first = await serve({ agents: [keeper] }, { data: path })
    const one = await first.start('c', 'one')
    expect(await heard(one)).toEqual({ found: [], given: null })
    const two = await first.start('c', 'two')
    const second = two.response.headers.get('x-interaction-id')!
    expect((await heard(two)).found).toEqual(['one'])
    await first.close()
    const again = await serve({ agents: [keeper] }, { data: path })
    expect((await heard(await again.start('c', 'three'))).found).toEqual(['one', 'two'])
    expect((await heard(await again.edit('c', second, 'other'))).found).toEqual(['one'])
    expect((await heard(await again.start('c', 'four'))).found).toEqual(['one', 'other'])
    await again.close()
    await remove()
  })

  test('is told of the state that a client brings, once', async () => {
    const server = await serve({ agents: [keeper] })
    const say = async (id: string, state: object) => {
      const messages = [{ id, role: 'user', content: id }]
      const events = await agui(server.url, { runId: id, messages, state })
      return JSON.parse(events.find(({ type }) => type === 'TEXT_MESSAGE_CONTENT').delta)
    }
    expect((await say('one', { topic: 'cats' })).given).toEqual({ topic: 'cats' })
    expect((await say('two', {})).given).toBeNull()
  })
})

describe('a model call of an agent', () => {
  test('may ask another model, in a place of its own, and be shown to nobody', async () => {
    const model = scriptedModel([[text('quiet')], [text('never')]])
    const agent: Agent = {
      name: 'asker',
      // biome-ignore lint/correctness/useYield: all it does goes through ctx
      async *run(ctx: AgentContext): AsyncGenerator<AgentEvent> {
        const call = { messages: ctx.messages().slice(0, 1), by: model, at: 'node' }
        const { message } = await ctx.model({ ...call, hidden: true })
        await ctx.ask({ kind: 'input', title: 'Go on?', key: 'go' })
        expect(message.parts).toEqual([{ type: 'text', text: 'quiet' }])
      },
    }
    const server = await serve({ agents: [agent] })
    const stream = await server.start('c', 'go')
    const frames = await stream.until('approval_required')
    const id = stream.response.headers.get('x-interaction-id')!
    const approvalId = frames.at(-1)!.data.approval_id
    await server.approve('c', id, { approval_id: approvalId, approved: true })
    const all = [...frames, ...(await stream.rest())]
    expect(all.filter(({ event }) => event.startsWith('answer'))).toEqual([])
    expect(all.at(-1)!.data.status).toBe('COMPLETED')
    expect(
      (await server.chat('c')).interactions[0].agent_events.map(
        ({ type }: { type: string }) => type,
      ),
    ).not.toContain('ANSWER')
    expect(model.requests.length).toBe(1)
  })

  test('that was made past us counts, and stops the next one', async () => {
    const agent: Agent = {
      name: 'bypass',
      // biome-ignore lint/correctness/useYield: all it does goes through ctx
      async *run(ctx: AgentContext): AsyncGenerator<AgentEvent> {
        ctx.metered({ model: 'elsewhere', usage: { inputTokens: 3, outputTokens: 4 } })
        await ctx.ask({ kind: 'input', title: 'Go on?', key: 'go', timeout: 1 })
        await ctx.model({ messages: ctx.messages() })
      },
    }
    const env = { HANDRAIL_HITL: 'on', HANDRAIL_ACTION_LIMIT: '1' }
    const server = await serve({ agents: [agent] }, { env })
    const stream = await server.start('c', 'go')
    const kinds: string[] = []
    for await (const { event, data } of stream.frames) {
      if (event === 'approval_required') kinds.push(data.kind)
      if (kinds.includes('budget')) break
    }
    expect(kinds.at(-1)).toBe('budget')
    stream.leave()
  })
})
