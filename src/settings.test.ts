import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { serve } from '../test/support/serve.ts'
import { temporaryDirectory } from '../test/support/server.ts'
import { find } from '../test/support/tools.ts'
import { call, scriptedModel } from './models/scripted.ts'
import { loadSettings } from './settings.ts'

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
