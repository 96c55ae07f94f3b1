import { readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { serve } from '../test/support/serve.ts'
import { temporaryDirectory } from '../test/support/server.ts'
import { find, said } from '../test/support/tools.ts'
import { ConfigError } from './lib/config-error.ts'
import { loadSettings } from './load-settings.ts'
import { call, scriptedModel, text } from './models/scripted.ts'
import { policyOf } from './settings.ts'
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

test('a tool with a field that no JSON value fits is refused at the start, by name', async () => {
  const fileOf = (schema: string) =>
    fileWith(`
      import { z } from '${import.meta.resolve('zod')}'
      const schema = ${schema}
      export default { tools: [{ name: 'odd', description: '', schema, run: () => '' }] }
    `)
  for (const type of ['z.date()', 'z.bigint()', 'z.set(z.string())', 'z.date().optional()']) {
    const loading = loadSettings(await fileOf(`z.object({ a: z.object({ day: ${type} }) })`))
    await expect(loading).rejects.toThrow('tools: no JSON value fits a.day of odd')
  }
  const fitting = 'z.preprocess((text) => new Date(text), z.date())'
  await loadSettings(await fileOf(`z.object({ a: z.coerce.date(), b: ${fitting} })`))
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

const index = new URL('./index.ts', import.meta.url).href
const loop = `import { toolLoop, workflow } from '${index}'`
const agent = "toolLoop({ name: 'clerk' })"
const named = (name: string) => `{ name: '${name}', schema: { issues: () => [] }, run() {} }`

test.each([
  ['{ polcy: [] }', /^polcy is not known. Known: agents, model, .*policy/],
  ['[]', /default export/],
  ['{ policy: {} }', /^policy: write a list of rules/],
  ['{ guardrails: { inputs: [] } }', /^guardrails.inputs is not known. Known: input, output/],
  ["{ guardrails: { input: [{ word: ['x'] }] } }", /^guardrails.input.0.word is not known/],
  ["{ guardrails: { remote: { uri: 'x' } } }", /^guardrails.remote.uri is not known. Known: url/],
  ["{ guardrails: { whenAway: 'maybe' } }", /^guardrails.whenAway: write deny or allow\.$/],
  [`{ agents: [{ agent: ${agent}, govenor: {} }] }`, /^agents.0.govenor is not known/],
  [
    `{ agents: [{ agent: ${agent}, governor: { isHitlEnabled: true, actionLimitt: 5 } }] }`,
    /^agents.0.governor.actionLimitt is not known. Known: isHitlEnabled, actionLimit/,
  ],
  [
    `{ agents: [{ agent: ${agent}, governor: { isHitlEnabled: 'yes' } }] }`,
    /^agents.0.governor.isHitlEnabled: write true or false\.$/,
  ],
  [
    `{ agents: [{ agent: ${agent}, governor: { actionLimit: -5 } }] }`,
    /^agents.0.governor.actionLimit: write a whole number of 0 or more\.$/,
  ],
  [
    `{ agents: [{ agent: ${agent}, governor: { moneyLimit: '5' } }] }`,
    /^agents.0.governor.moneyLimit: write a number over 0, or null for no limit\.$/,
  ],
  [`{ agents: [{ agent: ${agent}, toolPermissions: { x: 'no' } }] }`, /^agents.0.tool.*x: write/],
  [
    `{ agents: [{ agent: ${agent}, allowedTools: ['nosuch'] }] }`,
    /^agents.0.allowedTools: there is no tool nosuch. Known: list_files, .*echo\.$/,
  ],
  [`{ agents: [{ agent: ${agent}, mcp: ['nosuch'] }] }`, /no MCP server nosuch. Known: none\.$/],
  ['{ retry: { attempt: 3 } }', /^retry.attempt is not known. Known: attempts, first/],
  ["{ retry: { attempts: 'x' } }", /^retry.attempts: write a whole number of 1 or more\.$/],
  ['{ prices: { m: { inputs: 1 } } }', /^prices.m.inputs is not known. Known: input, output/],
  ['{ prices: { m: { input: 1 } } }', /^prices.m.output is missing\.$/],
  ['{ workflow: { approvalTimeot: 1 } }', /^workflow.approvalTimeot is not known/],
  ['{ providers: { concurrent: -1 } }', /^providers.concurrent: write a whole number of 1/],
  ['{ silence: { first: 0 } }', /^silence.first: write/],
  ['{ sizes: { inputs: 1 } }', /^sizes.inputs is not known. Known: input, message\.$/],
  ['{ model: 5 }', /^model: write the name of a model/],
  ['{ agents: [] }', /^agents: name one/],
  ["{ agents: ['clerk'] }", /^agents.0: write an agent, as toolLoop/],
  ['{ agents: [{}] }', /^agents.0: write an agent/],
  ['{ agents: [toolLoop({})] }', /^agents.0.name: write a text that is not empty\.$/],
  [`{ agents: [${agent}, ${agent}] }`, /^agents: two are called clerk\./],
  [`{ agents: [${agent}], remote: [{ name: 'clerk', url: 'http://x' }] }`, /two are called clerk/],
  [`{ tools: [${named('a')}, ${named('a')}] }`, /^tools: two are called a\./],
  [
    `{ agents: [workflow({ name: 'flow', steps: [{ agent: 'nosuch', outputKey: 'a' }] })] }`,
    /^The step a of flow is for the agent nosuch, which is not there. Known: flow\.$/,
  ],
  ["{ remote: [{ name: 'x' }] }", /^remote.0: give the url of the agent, or the agent itself\.$/],
  ["{ mcp: { files: { comand: 'x' } } }", /^mcp.files: give it a command to start, or the url/],
])('%s is refused at the start', async (settings, sentence) => {
  const read = loadSettings(await fileWith(`${loop}\nexport default ${settings}`)).then(policyOf)
  await expect(read).rejects.toThrow(sentence)
  await expect(read).rejects.toBeInstanceOf(ConfigError)
})

test('what a configuration may say is taken as it is', async () => {
  const file = await fileWith(`${loop}
    const model = { name: 'm', async *stream() {} }
    const governor = { isHitlEnabled: true, actionLimit: 0, tokenLimit: null, moneyLimit: 0.5 }
    export default {
      agents: [
        { agent: ${agent}, governor, model, apiKey: undefined, allowedTools: ['echo', 'crm__find'], mcp: ['crm'] },
        workflow({ name: 'flow', steps: [{ agent: 'clerk', outputKey: 'a' }] }),
        { name: 'own', async *run() {} },
      ],
      tools: { echo: ${named('')} },
      mcp: { crm: { url: 'http://localhost:1/' } },
      guardrails: { input: [{ decision: 'deny', pattern: /x/ }], redact: true },
      retry: { attempts: 1, first: 0 },
      prices: { m: { input: 0.1, output: 1 } },
    }`)
  await expect(loadSettings(file)).resolves.toBeDefined()
})

test.each(['approvals', 'governor', 'guardrails', 'mcp', 'policy', 'remote'])(
  'the configuration in docs/%s.md is taken as it is printed',
  async (name) => {
    const page = await readFile(new URL(`../docs/${name}.md`, import.meta.url), 'utf8')
    const block = /```[jt]s\n(import[^`]*?export default defineConfig.*?)```/s.exec(page)![1]!
    const file = await fileWith(
      block.replace("'handrail'", `'${index}'`).replace('./tokens.ts', './tokens.mjs'),
    )
    await writeFile(join(dirname(file), 'tokens.mjs'), 'export const tokenOf = () => ""')
    expect(policyOf(await loadSettings(file)).length).toBeGreaterThan(1)
  },
)

test('a tool named like a built-in takes its place, and is listed once', async () => {
  const echo = { name: 'echo', description: 'Ours', schema: z.object({}), run: async () => '' }
  const server = await serve({ tools: [echo] })
  const { tools } = server.server.runtime.agents()[0]!
  expect(tools.filter(({ name }) => name === 'echo')).toEqual([echo])
})

test.each([
  ['ts', 'export default {\n  agents: [}\n}', /^x.ts: line 2: Unexpected "}"\.$/],
  ['mjs', 'const a = 1\na.b.c()', /^x.mjs: line 2: Cannot read properties of undefined/],
  ['mjs', 'import "no-such-package"', /^x.mjs: .*Cannot find package 'no-such-package'/],
  ['mjs', 'throw 5', /^x.mjs: it threw 5\.$/],
])('a file of %s that cannot be read is one sentence: %s', async (end, written, sentence) => {
  const { path, remove } = await temporaryDirectory()
  onTestFinished(remove)
  await writeFile(join(path, `x.${end}`), written)
  const read = loadSettings(join(path, `x.${end}`))
  await expect(read).rejects.toBeInstanceOf(ConfigError)
  const { message } = (await read.catch((error: Error) => error)) as Error
  expect(message.replace(`${path}/x`, 'x')).toMatch(sentence)
  expect(message).not.toContain('\n')
})

test('a directory is no configuration', async () => {
  const { path, remove } = await temporaryDirectory()
  onTestFinished(remove)
  await expect(loadSettings(path)).rejects.toThrow(/^HANDRAIL_CONFIG: .* is no file/)
})

test('a tool without a name and an action of a strange type are refused at the start', async () => {
  const nameless = 'export default { tools: [{ description: "", schema: {}, run() {} }] }'
  await expect(loadSettings(await fileWith(nameless))).rejects.toThrow('tools.0: give it a name.')
  const strange = `export default {
    actions: [{ name: 'a', parameters: [{ name: 'x', type: 'date' }], handler() {} }]
  }`
  await expect(loadSettings(await fileWith(strange))).rejects.toThrow('there is no type date')
})
