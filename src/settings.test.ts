import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { serve } from '../test/support/serve.ts'
import { temporaryDirectory } from '../test/support/server.ts'
import { find, said } from '../test/support/tools.ts'
import { call, scriptedModel, text } from './models/scripted.ts'
import { loadSettings } from './settings.ts'
import { tool } from './tools/define.ts'

async function fileWith(text: string): Promise<string> {
  const { path, remove } = await temporaryDirectory()
  onTestFinished(remove)
  const file = join(path, 'handrail.config.mjs')
  await writeFile(file, text)
  return file
}

test('a tool whose schema is not of our zod is refused at the start, by name', async () => {
  const file = await fileWith(`
    const tool = { name: 'odd', description: '', schema: { parse: () => ({}) }, run: () => '' }
    export default { tools: [tool] }
  `)
  await expect(loadSettings(file)).rejects.toThrow('tools: the schema of odd is not of zod 4')
})

test('a file without settings, and a file that is not there, are told apart', async () => {
  await expect(loadSettings(await fileWith('export default 1'))).rejects.toThrow('default export')
  await expect(loadSettings('nowhere.mjs')).rejects.toThrow('there is no file nowhere.mjs')
})

test('an agent that cannot even be prepared fails its run, and does not try for ever', async () => {
  const odd = { name: 'odd', description: '', schema: {} as never, run: async () => '' }
  const model = scriptedModel([[call('1', 'odd', {})]])
  const server = await serve({ model, tools: [odd], builtIns: false })
  const events = await (await server.start('c', 'hello')).rest()
  expect(find(events, 'interaction_complete')).toMatchObject({ status: 'FAILED' })
})

test('tools by key, and actions of CopilotKit, are offered and run', async () => {
  const greet = tool({
    description: 'Greets',
    input: z.object({ name: z.string() }),
    run: async ({ name }) => `Hello ${name}`,
  })
  const handler = async ({ items }: { items: { id: string }[] }) => ({ packed: items.length })
  const items = { name: 'items', type: 'object[]', attributes: [{ name: 'id' }] } as const
  const model = scriptedModel([
    [call('1', 'greet', { name: 'ann' }), call('2', 'pack', { items: [{ id: 'a' }, { id: 'b' }] })],
    [text('Done.')],
  ])
  const server = await serve({
    ...{ model, builtIns: false, policy: [{ decision: 'allow' }] },
    tools: { greet },
    actions: [{ name: 'pack', description: 'Packs', parameters: [items], handler }],
  })
  await (await server.start('c', 'go')).rest()
  expect(model.requests[0]!.tools.map(({ name }) => name)).toEqual(['greet', 'pack'])
  expect(said(model.requests[1]).slice(-2).sort()).toEqual([
    ...['tool: Hello ann', 'tool: {"packed":2}'],
  ])
})

test('a tool without a name and an action of a strange type are refused at the start', async () => {
  const nameless = 'export default { tools: [{ description: "", schema: {}, run() {} }] }'
  await expect(loadSettings(await fileWith(nameless))).rejects.toThrow('tools.0: give it a name.')
  const strange = `export default {
    actions: [{ name: 'a', parameters: [{ name: 'x', type: 'date' }], handler() {} }]
  }`
  await expect(loadSettings(await fileWith(strange))).rejects.toThrow('there is no type date')
})
