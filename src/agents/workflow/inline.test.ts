import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { serve } from '../../../test/support/serve.ts'
import { temporaryDirectory } from '../../../test/support/server.ts'
import { problem } from '../../../test/support/tools.ts'
import { defineTool } from '../../core/tool.ts'
import { call, scriptedModel, text } from '../../models/scripted.ts'
import { toolLoop } from '../tool-loop/agent.ts'
import { workflow } from './agent.ts'

/** Agents in no configuration, each with a tool `pay` of its own that pays so much at most. */
function house() {
  const paid: string[] = []
  const payer = (name: string, most: number) => ({
    ...toolLoop({ name }),
    tools: [
      defineTool({
        name: 'pay',
        description: `Pays up to ${most}.`,
        schema: z.strictObject({ amount: z.number().max(most) }),
        access: 'write',
        run: async ({ amount }) => {
          paid.push(`${name} ${amount}`)
          return 'paid'
        },
      }),
    ],
  })
  const model = scriptedModel(async function* ({ messages }) {
    if (messages.length === 1) yield call(`call_${model.requests.length}`, 'pay', { amount: 1 })
    else yield text('done')
  })
  const inner = workflow({
    name: 'inner',
    steps: [{ agent: payer('deep', 1_000), outputKey: 'x' }],
  })
  const parallel = [
    { agent: payer('poor', 10), outputKey: 'a' },
    { agent: payer('rich', 100), outputKey: 'b' },
    { agent: inner, outputKey: 'c' },
  ]
  const flow = workflow({ name: 'flow', steps: [{ parallel }] })
  // One of the configuration's has the name of one that is not.
  return { paid, settings: { model, agents: [flow, payer('poor', 100_000)] } }
}

test('what an agent in no configuration is to be run with is judged by its own tools', async () => {
  const { path, remove } = await temporaryDirectory()
  onTestFinished(remove)
  const { paid, settings } = house()
  const first = await serve(settings, { data: path })
  const stream = await first.start('c', 'go')
  const run = stream.response.headers.get('x-interaction-id')!
  await first.recorded('c', 'run.waiting')
  const raised = (await first.journal('c')).flatMap((one) =>
    one.kind === 'ask.raised' ? [one.body.ask] : [],
  )
  const askOf = new Map(raised.map((ask) => [`${ask.path} ${ask.agent}`, ask.askId]))
  expect([...askOf.keys()].sort()).toEqual(['a poor', 'b rich', 'c/x deep'])
  await first.close()
  // Nobody is at work: who asked is known by the way to it alone.
  const second = await serve(settings, { data: path })
  const edit = (who: string, amount: number) =>
    second.approve('c', run, {
      approval_id: askOf.get(who),
      approved: true,
      edited_input: { amount },
    })
  for (const [who, tooMuch, enough] of [
    ['a poor', 11, 10],
    ['b rich', 101, 100],
    ['c/x deep', 1_001, 1_000],
  ] as const) {
    expect(await problem(await edit(who, tooMuch))).toMatchObject({
      http: 400,
      field: 'body.edited_input.amount',
    })
    expect((await edit(who, enough)).status).toBe(200)
  }
  await second.recorded('c', 'run.completed')
  expect(paid.sort()).toEqual(['deep 1000', 'poor 10', 'rich 100'])
  await second.close()
})
