import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { OutcomeUnknown } from '../../src/core/tool.ts'
import { scriptedModel, text } from '../../src/models/scripted.ts'
import { serve } from '../support/serve.ts'
import { temporaryDirectory } from '../support/server.ts'
import { asked, send, story } from '../support/story.ts'
import { find, names, said, seedFrames, tools } from '../support/tools.ts'

describe('remember', () => {
  test('allows the tool for the rest of the chat, and in no other chat', async () => {
    const server = await story((request) => {
      const last = request.messages.at(-1)!
      return last.role === 'user' ? [send(last.id)] : [text('Paid.')]
    })
    const { stream, interaction_id, approval_id } = await asked(server)
    await server.approve('c', interaction_id, { approval_id, approved: true, remember: true })
    await stream.rest()
    const second = await (await server.start('c', 'again')).rest()
    expect(names(seedFrames(second))).toEqual([
      'interaction_started',
      'tool_call',
      'tool_result',
      'answer',
      'interaction_complete',
    ])
    expect(server.sent).toHaveLength(2)
    const elsewhere = await asked(server, 'other')
    elsewhere.stream.leave()
  })

  test('is void once the schema of the tool changes', async () => {
    const data = await temporaryDirectory()
    const model = () =>
      scriptedModel((request) => {
        const last = request.messages.at(-1)!
        return last.role === 'user' ? [send(last.id)] : [text('Paid.')]
      })
    const box = tools()
    const first = await serve(
      { model: model(), tools: box.all, builtIns: false },
      { data: data.path },
    )
    const stream = await first.start('c', 'pay')
    const ask = find(await stream.until('approval_required'), 'approval_required')
    const interaction = stream.response.headers.get('x-interaction-id')!
    const { approval_id } = ask
    await first.approve('c', interaction, { approval_id, approved: true, remember: true })
    await stream.rest()
    await first.close()

    const same = await serve(
      { model: model(), tools: box.all, builtIns: false },
      { data: data.path },
    )
    expect(names(await (await same.start('c', 'again')).rest())).not.toContain('approval_required')
    await same.close()

    const schema = z.strictObject({ to: z.string(), amount: z.number().max(1_000_000) })
    const changed = [{ ...box.send, schema }]
    const third = await serve(
      { model: model(), tools: changed, builtIns: false },
      { data: data.path },
    )
    const asks = await third.start('c', 'and again')
    await asks.until('approval_required')
    asks.leave()
    expect(box.sent).toHaveLength(2)
    await third.close()
    await data.remove()
  })

  test('an approval given before the schema changed does not run the changed tool (I11)', async () => {
    const data = await temporaryDirectory()
    const box = tools()
    const steps = [[send('1')], [text('Paid.')]]
    const first = await serve(
      { model: scriptedModel(steps), tools: box.all, builtIns: false },
      { data: data.path },
    )
    const stream = await first.start('c', 'pay')
    const { approval_id } = find(await stream.until('approval_required'), 'approval_required')
    const interaction = stream.response.headers.get('x-interaction-id')!
    await first.recorded('c', 'run.waiting')
    stream.leave()
    await first.close()

    const schema = z.strictObject({
      to: z.string(),
      amount: z.number(),
      fast: z.boolean().default(true),
    })
    const model = scriptedModel(steps.slice(1))
    const second = await serve(
      { model, tools: [{ ...box.send, schema }], builtIns: false },
      { data: data.path },
    )
    const joined = await second.join('c', interaction)
    await second.approve('c', interaction, { approval_id, approved: true })
    await joined.rest()
    expect(box.sent).toEqual([])
    expect(said(model.requests[0]).at(-1)).toMatch(/^tool: The tool changed after .* not run/)
    await second.close()
    await data.remove()
  })
})

test.each([
  [{ outcome: 'happened', result: 'She has it.' }, /^tool: She has it\.$/],
  [{ outcome: 'did_not' }, /^tool: The tool changed after .* not run/],
])('a call in doubt is asked about, also when its tool has changed: %j', async (outcome, heard) => {
  const data = await temporaryDirectory()
  const box = tools()
  const cut = {
    ...box.send,
    timeout: 100,
    run: async () => {
      throw new OutcomeUnknown('The line went dead.', true)
    },
  }
  const first = await serve(
    { model: scriptedModel([[send('1')]]), tools: [cut], builtIns: false },
    { data: data.path },
  )
  const stream = await first.start('c', 'pay')
  const { approval_id } = find(await stream.until('approval_required'), 'approval_required')
  const interaction = stream.response.headers.get('x-interaction-id')!
  await first.approve('c', interaction, { approval_id, approved: true })
  const doubt = find(await stream.until('approval_required'), 'approval_required')
  expect(doubt).toMatchObject({ kind: 'in_doubt' })
  expect(doubt.card.evidence).toEqual({ error: 'The line went dead.' })
  await first.recorded('c', 'run.waiting')
  stream.leave()
  await first.close()

  const schema = z.strictObject({ to: z.string(), amount: z.number(), note: z.string().optional() })
  const model = scriptedModel([[text('So be it.')]])
  const settings = { model, tools: [{ ...box.send, schema }], builtIns: false }
  const second = await serve(settings, { data: data.path })
  const joined = await second.join('c', interaction)
  const answer = { approval_id: doubt.approval_id, ...outcome }
  expect((await second.approve('c', interaction, answer)).status).toBe(200)
  await joined.rest()
  expect(box.sent).toEqual([])
  expect(said(model.requests[0]).at(-1)).toMatch(heard)
  await second.close()
  await data.remove()
})
