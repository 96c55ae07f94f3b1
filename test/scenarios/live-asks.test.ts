import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { defineTool } from '../../src/core/tool.ts'
import { call, scriptedModel, text } from '../../src/models/scripted.ts'
import { cluster } from '../support/cluster.ts'
import { serve } from '../support/serve.ts'
import { find, problem } from '../support/tools.ts'

test('a question in the middle of a call is answered on any server, and asked once', async () => {
  const runs: string[] = []
  const choose = defineTool({
    name: 'choose',
    description: 'Asks which colour it is to be.',
    schema: z.strictObject({}),
    access: 'read',
    timeout: 1_000,
    async run(_, { ask, tenant }) {
      runs.push(tenant)
      const schema = z.toJSONSchema(z.object({ colour: z.string() }))
      const { state, value } = await ask({ title: 'Which colour?', schema })
      return `${state} ${JSON.stringify(value)}`
    },
  })
  const model = scriptedModel(({ messages }) =>
    messages.at(-1)!.role === 'user' ? [call('1', 'choose', {})] : [text('So be it.')],
  )
  const all = await cluster(2, { model, tools: [choose] })
  onTestFinished(() => all.close())
  const [a, b] = all.servers
  const stream = await a!.start('c', 'go')
  const asked = find(await stream.until('approval_required'), 'approval_required')
  const interaction = stream.response.headers.get('x-interaction-id')!
  await new Promise((resolve) => setTimeout(resolve, 1_500)) // the tool has a second, without this
  const { approval_id } = asked
  const colours = ['red', 'blue', 'green']
  const answers = colours.map((colour, i) =>
    [a, b][i % 2]!.approve('c', interaction, { approval_id, answer: { colour } }),
  )
  const statuses = (await Promise.all(answers)).map(({ status }) => status)
  expect(statuses.filter((status) => status === 200)).toHaveLength(1)
  const won = colours[statuses.indexOf(200)]
  const result = find(await stream.rest(), 'tool_result').tool_output
  expect(result).toBe(`answered {"colour":"${won}"}`)
  expect(runs).toEqual(['default'])
})

test('a pattern in the schema of a question is checked in linear time', async () => {
  const schema = {
    type: 'object',
    properties: { colour: { type: 'string', pattern: '^(a+)+$' } },
    patternProperties: { '^(b+)+$': { type: 'string' } },
  }
  const choose = defineTool({
    ...{ name: 'choose', description: 'Asks.', schema: z.strictObject({}), access: 'read' },
    run: async (_, { ask }) => JSON.stringify((await ask({ title: 'Which?', schema })).value),
  })
  const model = scriptedModel(({ messages }) =>
    messages.at(-1)!.role === 'user' ? [call('1', 'choose', {})] : [text('So be it.')],
  )
  const server = await serve({ model, tools: [choose] })
  const stream = await server.start('c', 'go')
  const { approval_id } = find(await stream.until('approval_required'), 'approval_required')
  const interaction = stream.response.headers.get('x-interaction-id')!
  const answer = (value: object) => server.approve('c', interaction, { approval_id, answer: value })
  const refused = await answer({ colour: `${'a'.repeat(40)}!` })
  expect(await problem(refused)).toMatchObject({ http: 400, field: 'body.answer.colour' })
  expect((await answer({ [`${'b'.repeat(40)}!`]: 1, colour: 'aa' })).status).toBe(200)
  expect(find(await stream.rest(), 'tool_result').tool_output).toContain('"colour":"aa"')
})
