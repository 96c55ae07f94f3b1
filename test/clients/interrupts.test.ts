import { describe, expect, test } from 'vitest'
import { scriptedModel, text } from '../../src/models/scripted.ts'
import { gate } from '../support/gate.ts'
import { serve } from '../support/serve.ts'
import { look, send, story } from '../support/story.ts'
import { said, tools } from '../support/tools.ts'
import { type Client, clients, ending, finished, interruptsOf } from './support.ts'

const two = [[text('I pay.'), send('1')], [text('Done.')]]
const resolved = (interruptId: string, payload: unknown) =>
  ({ interruptId, status: 'resolved', payload }) as const

describe.for(clients)('$name', ({ open }) => {
  /** Says something that needs a person. */
  async function asked(steps: Parameters<typeof story>[0] = two) {
    const server = await story(steps)
    const client = await open(server.url, 't')
    const stream = await client.say('pay ann')
    return { server, client, stream, id: interruptsOf(stream)[0]!.id as string }
  }

  async function reconnected(url: string, client: Client) {
    const fresh = await open(url, 't')
    await fresh.connect()
    expect(fresh.shown()).toEqual(client.shown())
    return fresh
  }

  test('is asked by an interrupt that says all there is to decide on', async () => {
    const { client, stream, server } = await asked()
    expect(stream.events.at(-2)!.type).toBe('MESSAGES_SNAPSHOT')
    const [interrupt, ...others] = interruptsOf(stream)
    expect(others).toEqual([])
    expect(interrupt).toMatchObject({
      ...{ reason: 'confirmation', message: 'Send 5 to “ann”', toolCallId: '1' },
      responseSchema: { type: 'object', required: ['approved'] },
      metadata: { kind: 'approval', tool: 'send', input: { to: 'ann', amount: 5 } },
    })
    expect(Date.parse(interrupt!.metadata.deadline)).toBeGreaterThan(Date.now())
    const modern = String(stream.request.protocolVersion ?? '').startsWith('1')
    expect('expiresAt' in interrupt!).toBe(modern) // the other dialect would be stuck with it
    expect(client.agent.pendingInterrupts.map(({ id }) => id)).toEqual([interrupt!.id])
    expect(client.shown().at(-1)).toBe('assistant: I pay. send({"to":"ann","amount":5})')
    const fresh = await reconnected(server.url, client)
    expect(fresh.agent.pendingInterrupts.map(({ id }) => id)).toEqual([interrupt!.id])
    expect(server.sent).toEqual([])
  })

  test('approves: the call runs once, its real result is shown, nothing is asked any more', async () => {
    const { client, server, id } = await asked()
    const stream = await client.run({ resume: [resolved(id, { approved: true })] })
    expect(stream.events.map(({ type }) => type)).not.toContain('TOOL_CALL_START')
    expect(client.shown()).toEqual([
      ...['user: pay ann', 'assistant: I pay. send({"to":"ann","amount":5})'],
      ...['tool: sent 5 to ann', 'assistant: Done.'],
    ])
    expect(client.agent.pendingInterrupts).toEqual([])
    expect(server.sent).toEqual([{ to: 'ann', amount: 5 }])
    await reconnected(server.url, client)
  })

  test('resumes under the run id of the run that was interrupted, as pages do', async () => {
    const { client, server, id, stream } = await asked()
    const { runId } = stream.request
    const resumed = await client.run({ runId, resume: [resolved(id, { approved: true })] })
    expect(ending(resumed)).toMatchObject({ type: 'RUN_FINISHED', runId })
    expect(client.shown().at(-1)).toBe('assistant: Done.')
    expect(server.sent).toHaveLength(1)
  })

  test('rejects with a reason, which the model hears', async () => {
    const { client, server, id } = await asked()
    await client.run({ resume: [resolved(id, { approved: false, reason: 'ann is rich' })] })
    expect(said(server.model.requests[1]).at(-1)).toContain('ann is rich')
    expect(client.shown().at(-1)).toBe('assistant: Done.')
    expect(server.sent).toEqual([])
    await reconnected(server.url, client)
  })

  test('approves something else than was asked for, and that is what runs', async () => {
    const { client, server, id } = await asked()
    const editedArgs = { to: 'bob', amount: 1 }
    await client.run({ resume: [resolved(id, { approved: true, editedArgs })] })
    expect(server.sent).toEqual([editedArgs])
    expect(client.shown().at(-2)).toBe('tool: sent 1 to bob')
    await reconnected(server.url, client)
  })

  test('an edited call is shown with the arguments that ran, live and after a reconnect', async () => {
    const { client, server, id } = await asked()
    const editedArgs = { to: 'bob', amount: 1 }
    const stream = await client.run({ resume: [resolved(id, { approved: true, editedArgs })] })
    expect(client.shown()).toEqual([
      ...['user: pay ann', 'assistant: I pay. send({"to":"bob","amount":1})'],
      ...['tool: sent 1 to bob', 'assistant: Done.'],
    ])
    const calls = stream.events.filter(({ name }) => name === 'handrail:call')
    expect(calls.map(({ value }) => value)).toMatchObject([
      {
        ...{ toolCallId: '1', state: 'running', edited: true },
        ...{ input: editedArgs, originalInput: { to: 'ann', amount: 5 } },
      },
      { toolCallId: '1', state: 'done' },
    ])
    await reconnected(server.url, client)
  })

  test('walks away: a cancelled interrupt is a rejection, and says so', async () => {
    const { client, server, id } = await asked()
    await client.run({ resume: [{ interruptId: id, status: 'cancelled' }] })
    expect(said(server.model.requests[1]).at(-1)).toMatch(/dismissed/)
    expect(client.shown().at(-1)).toBe('assistant: Done.')
    expect(client.agent.pendingInterrupts).toEqual([])
    expect(server.sent).toEqual([])
  })

  test('ends the run by its answer', async () => {
    const { client, server, id } = await asked()
    const stream = await client.run({ resume: [resolved(id, { approved: false, stop: true })] })
    expect(ending(stream)).toMatchObject({
      type: 'RUN_FINISHED',
      metadata: { handrail: { status: 'cancelled' } },
    })
    expect(server.sent).toEqual([])
    expect(server.model.requests).toHaveLength(1)
    await reconnected(server.url, client)
  })

  test('allows the tool for the rest of the chat', async () => {
    const { client, server, id } = await asked([...two, [send('2', 7)], [text('Again.')]])
    await client.run({ resume: [resolved(id, { approved: true, remember: true })] })
    const stream = await client.say('and again')
    finished(stream)
    expect(server.sent.map(({ amount }) => amount)).toEqual([5, 7])
    const calls = stream.events.filter(({ name }) => name === 'handrail:call')
    expect(calls[0]?.value).toMatchObject({ toolCallId: '2', grantId: expect.any(String) })
  })

  test('answers several at once', async () => {
    const { client, server, stream } = await asked([[send('1', 1), send('2', 2)], [text('Both.')]])
    const [one, other] = interruptsOf(stream).map(({ id }) => id as string)
    await client.run({
      resume: [resolved(one!, { approved: true }), resolved(other!, { approved: false })],
    })
    expect(server.sent).toEqual([{ to: 'ann', amount: 1 }])
    expect(client.shown().at(-1)).toBe('assistant: Both.')
    await reconnected(server.url, client)
  })

  test('answers twice: it runs once, and the second is told how it was decided', async () => {
    const { client, server, id } = await asked()
    const resume = [resolved(id, { approved: true })]
    await client.run({ resume })
    const again = await client.run({ resume })
    const types = again.events.map(({ type }) => type)
    expect([types[0], types.at(-1)]).toEqual(['RUN_STARTED', 'RUN_FINISHED'])
    expect(types).toContain('MESSAGES_SNAPSHOT')
    expect(again.events.find(({ type }) => type === 'CUSTOM')).toMatchObject({
      name: 'handrail:decided',
      value: { interruptId: id, state: 'approved', by: expect.any(String) },
    })
    // Too late to change one's mind.
    const changed = await client.run({ resume: [resolved(id, { approved: false })] })
    expect(changed.events.find(({ type }) => type === 'CUSTOM')?.value.state).toBe('approved')
    expect(server.sent).toHaveLength(1)
    expect(server.model.requests).toHaveLength(2)
    expect(client.shown().at(-1)).toBe('assistant: Done.')
  })

  test('answers twice with a list that ends in what it asked: that is not asked again', async () => {
    const { client, server, id } = await asked()
    const resume = [resolved(id, { approved: true })]
    await client.run({ resume })
    client.agent.setMessages(client.agent.messages.slice(0, 1))
    const again = await client.run({ resume })
    finished(again)
    expect(interruptsOf(again)).toEqual([])
    expect(client.shown().at(-1)).toBe('assistant: Done.')
    expect(server.model.requests).toHaveLength(2)
  })

  test('two pages answer at the same time: one decision, one execution (I2, I3)', async () => {
    const { client, server, id } = await asked()
    const other = await open(server.url, 't')
    await other.connect()
    await Promise.all([
      client.run({ resume: [resolved(id, { approved: true })] }),
      other.run({ resume: [resolved(id, { approved: true })] }),
    ])
    expect(server.sent).toHaveLength(1)
    expect(server.model.requests).toHaveLength(2)
    for (const page of [client, other]) {
      await page.connect()
      expect(page.shown().at(-1)).toBe('assistant: Done.')
    }
  })

  test('finds the answer of someone else: given on another wire while it was away', async () => {
    const { client, server, id } = await asked()
    const chat = await server.chat('t')
    const interaction = chat.interactions[0].id
    const given = await server.approve('t', interaction, { approval_id: id, approved: true })
    expect(given.status).toBe(200)
    await server.recorded('t', 'run.completed')
    const fresh = await open(server.url, 't')
    await fresh.connect()
    expect(fresh.shown().slice(-2)).toEqual(['tool: sent 5 to ann', 'assistant: Done.'])
    expect(fresh.agent.pendingInterrupts).toEqual([])
    // The page that still shows the question answers it, and is told.
    const late = await client.run({ resume: [resolved(id, { approved: true })] })
    expect(late.events.find(({ type }) => type === 'CUSTOM')?.value.state).toBe('approved')
    expect(client.shown()).toEqual(fresh.shown())
    expect(server.sent).toHaveLength(1)
  })

  test('reads on while someone else answers on another wire: no question is left', async () => {
    const inside = gate()
    const { look: quick } = tools()
    const slow = { ...quick, run: () => inside.pass().then(() => 'saw sea') }
    const { send: pay, sent } = tools()
    const model = scriptedModel([[look('1', 'sea'), send('2')], [text('Both done.')]])
    const server = await serve({ model, tools: [slow, pay], builtIns: false })
    const client = await open(server.url, 't')
    const saying = client.say('look and pay')
    await inside.reached
    await server.recorded('t', 'ask.raised')
    const [interaction] = (await server.chat('t')).interactions
    const { ask } = (await server.journal('t')).find(({ kind }) => kind === 'ask.raised')!
      .body as unknown as { ask: { askId: string } }
    const body = { approval_id: ask.askId, approved: true }
    expect((await server.approve('t', interaction.id, body)).status).toBe(200)
    inside.open()
    finished(await saying)
    expect(client.agent.pendingInterrupts).toEqual([])
    expect(client.shown().at(-1)).toBe('assistant: Both done.')
    expect(sent).toHaveLength(1)
    await reconnected(server.url, client)
  })
})
