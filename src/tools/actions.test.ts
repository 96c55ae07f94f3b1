import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { toolUse } from '../../test/support/tool-use.ts'
import { jsonSchemaOf, readInput } from '../core/tool.ts'
import { type Action, actionTool } from './actions.ts'
import { namedTools, tool } from './define.ts'

const parameters: Action['parameters'] = [
  { name: 'title', description: 'What it is called' },
  { name: 'count', type: 'number', required: false },
  { name: 'kind', type: 'string', enum: ['red', 'blue'] },
  { name: 'tags', type: 'string[]' },
  { name: 'sizes', type: 'number[]', required: false },
  {
    ...{ name: 'owner', type: 'object' },
    attributes: [{ name: 'id' }, { name: 'admin', type: 'boolean', required: false }],
  },
  { name: 'parts', type: 'object[]', attributes: [{ name: 'weight', type: 'number' }] },
  { name: 'rest', type: 'object', required: false },
]

describe('an action', () => {
  const given = { title: 'a', kind: 'red', tags: ['x'], owner: { id: '1' }, parts: [{ weight: 2 }] }

  test('becomes a tool whose JSON Schema says what its parameters say', () => {
    const made = actionTool({ name: 'make', description: 'Makes it', parameters, handler: () => 1 })
    expect(jsonSchemaOf(made)).toMatchObject({
      type: 'object',
      required: ['title', 'kind', 'tags', 'owner', 'parts'],
      additionalProperties: false,
      properties: {
        title: { type: 'string', description: 'What it is called' },
        count: { type: 'number' },
        kind: { type: 'string', enum: ['red', 'blue'] },
        tags: { type: 'array', items: { type: 'string' } },
        sizes: { type: 'array', items: { type: 'number' } },
        owner: { type: 'object', required: ['id'], properties: { admin: { type: 'boolean' } } },
        parts: { type: 'array', items: { type: 'object', required: ['weight'] } },
        rest: { type: 'object' },
      },
    })
    expect(readInput(made, given)).toEqual({ input: given, shown: given })
    for (const wrong of [{ kind: 'green' }, { tags: 'x' }, { parts: [{}] }, { owner: {} }]) {
      expect(readInput(made, { ...given, ...wrong })).toHaveProperty('issues')
    }
  })

  test('runs its handler; one that says nothing is done', async () => {
    const handler = async ({ title }: { title: string }) => ({ made: title })
    const made = actionTool({ name: 'make', parameters, handler })
    expect(await made.run(given, toolUse())).toEqual({ made: 'a' })
    const silent = actionTool({ name: 'quiet', handler: () => undefined })
    expect(await silent.run({}, toolUse())).toBe('Done.')
  })

  test('that can never work is refused', () => {
    const handler = () => 1
    expect(() => actionTool({ name: 'a b', handler })).toThrow(/^actions\.a b: name actions/)
    const strange = [{ name: 'x', type: 'date' }] as never
    expect(() => actionTool({ name: 'a', parameters: strange, handler })).toThrow(
      'actions.a.x: there is no type date.',
    )
  })
})

describe('a tool in code', () => {
  const get_weather = tool({
    description: 'Tells the weather',
    input: z.object({ city: z.string() }),
    run: async ({ city }) => `Sun in ${city}`,
  })

  test('is named by its key, or by itself', async () => {
    const [made] = namedTools({ get_weather })
    expect(made).toMatchObject({ name: 'get_weather', description: 'Tells the weather' })
    expect(await made!.run({ city: 'Rome' }, toolUse())).toBe('Sun in Rome')
    expect(namedTools([{ ...get_weather, name: 'other' }])[0]!.name).toBe('other')
    expect(namedTools({ key: { ...get_weather, name: 'other' } })[0]!.name).toBe('other')
  })

  test('without a name, or with a strange one, is refused', () => {
    expect(() => namedTools([get_weather])).toThrow('tools.0: give it a name.')
    expect(() => namedTools({ 'get weather': get_weather })).toThrow(/name tools with/)
  })
})
