import { expect, test } from 'vitest'
import { toolUse } from '../../test/support/tool-use.ts'
import { jsonSchemaOf, readInput } from '../core/tool.ts'
import { builtInTools, weather } from './index.ts'

const use = toolUse()

test('every tool says what it takes and what it would do', () => {
  const inputs: Record<string, unknown> = {
    list_files: {},
    read_file: { path: 'a' },
    write_file: { path: 'a', content: 'b' },
    run_code: { code: '1' },
    weather: { city: 'Paris' },
    echo: { text: 'hi' },
  }
  const tools = builtInTools({ root: '/nowhere' })
  expect(tools.map((tool) => tool.name)).toEqual(Object.keys(inputs))
  for (const tool of tools) {
    expect(jsonSchemaOf(tool)).toMatchObject({ type: 'object', additionalProperties: false })
    const properties = (jsonSchemaOf(tool) as { properties: object }).properties
    for (const property of Object.values(properties)) expect(property.description).toBeTruthy()
    const read = readInput(tool, inputs[tool.name])
    const { input } = read as { input: object }
    expect(tool.describe?.(input, use)).toMatch(/^[A-Z]\S* .*[^.]$/)
    expect(readInput(tool, { ...input, more: 1 })).toHaveProperty('issues')
  }
})

test('tools that only read, and code in the sandbox, are idempotent', () => {
  for (const { name, idempotent, access } of builtInTools({ root: '/nowhere' }))
    expect(idempotent ?? false, name).toBe(access === 'read' || name === 'run_code')
})

test('the weather is found whatever the spelling, and is labelled as sample data', async () => {
  expect(await weather().run({ city: ' sao  PAULO ' }, use)).toMatch(/^São Paulo: .*sample data/)
  await expect(weather().run({ city: 'Atlantis' }, use)).rejects.toThrow(
    /no sample weather for Atlantis\. Known cities: Barcelona, .*Tokyo\./,
  )
})
