import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { mcpStage } from '../../../test/support/mcp.ts'
import { temporaryDirectory } from '../../../test/support/server.ts'
import { toolUse } from '../../../test/support/tool-use.ts'
import { makeTool, toolName } from './make-tool.ts'
import { openMcp } from './mcp.ts'
import { schemaReader } from './schema.ts'
import { checkServers, type McpServer } from './servers.ts'

test.each([
  ['a b', { command: 'x' }, /^mcp\.a b: name servers with/],
  ['a__b', { command: 'x' }, /^mcp\.a__b: name servers with/],
  ['a', {}, /^mcp\.a: give it a command to start, or the url/],
  ['a', { url: 'file:///etc/passwd' }, /^mcp\.a\.url: /],
  ['a', { url: 'http://localhost/', command: 'x' }, /^mcp\.a: .*command/],
  ['a', { command: 'x', timeout: -1 }, /^mcp\.a\.timeout: /],
  ['a', { command: 'x', trusts: true }, /^mcp\.a: .*trusts/],
])('what is no server is refused at the start: %s %j', (name, server, problem) => {
  expect(() => checkServers({ [name]: server as McpServer })).toThrow(problem)
})

test('names are those that all providers take, and differ where tools do', () => {
  expect(toolName('files', 'read_file')).toBe('files__read_file')
  const strange = ['läs fil', 'las.fil', 'x'.repeat(80), `${'x'.repeat(79)}y`]
  const names = strange.map((tool) => toolName('files', tool))
  for (const name of names) expect(name).toMatch(/^files__[a-zA-Z0-9_-]{1,57}$/)
  expect(new Set(names).size).toBe(strange.length)
})

test('a server elsewhere is another one, whatever it is called; a new token is not', async () => {
  const schema = await schemaReader()
  const call = async () => ({ content: [] })
  const made = (options: McpServer, annotations = {}) =>
    makeTool(
      { name: 't', inputSchema: { type: 'object' }, annotations },
      { server: 's', options, schema, call },
    )
  const servers: McpServer[] = [
    { url: 'https://a.org/mcp' },
    { url: 'https://b.org/mcp' },
    { url: 'https://a.org/other' },
    { command: 'x' },
    { command: 'x', args: ['y'] },
  ]
  expect(new Set(servers.map((one) => made(one).origin)).size).toBe(servers.length)
  const token = made({ url: 'https://a.org/mcp?token=2', headers: { a: 'b' } })
  expect(token.origin).toBe(made(servers[0]!).origin)
  expect(made({ command: 'x' }, { destructiveHint: false }).risk?.({}, toolUse()).level).toBe(
    'high',
  )
  const trusted = made({ command: 'x', trust: true }, { destructiveHint: false })
  expect(trusted.risk?.({}, toolUse()).level).toBe('medium')
})

test('schemas of any dialect are kept as they are, and checked by their own rules', async () => {
  const read = await schemaReader()
  const pair = (more: object) => read({ type: 'object', properties: { pair: more } })
  const modern = pair({ type: 'array', prefixItems: [{ type: 'string' }], items: false })
  expect(modern.issues({ pair: ['a'] })).toEqual([])
  expect(modern.issues({ pair: ['a', 1] })).toMatchObject([{ path: ['pair'] }])
  const $schema = 'http://json-schema.org/draft-07/schema#'
  const old = read({ $schema, properties: { a: { items: [{ type: 'string' }] } }, required: ['b'] })
  expect(old.issues({ a: [1] })).toEqual([
    { path: ['b'], message: expect.stringContaining('required') },
    { path: ['a', '0'], message: 'must be string' },
  ])
  expect(() => read({ $ref: '#/nowhere' })).toThrow()
})

test('a question that could be of several calls is put to nobody; in turn, it is known whose it is', async () => {
  const stage = await mcpStage()
  const log: object[] = []
  const logs = { info() {}, warn: (about: object) => void log.push(about) }
  const asked: string[] = []
  const ask = (who: string) =>
    toolUse({
      ask: async () => {
        asked.push(who)
        return { state: 'answered', value: { colour: 'red' } }
      },
    })
  const servers = { many: stage.stdio, one: { ...stage.stdio, serial: true } }
  const mcp = await openMcp(servers, { log: logs, wait: 15_000 })
  const tool = (name: string) => mcp.tools().find((one) => one.name === name)!
  try {
    const slow = tool('many__slow').run({ ms: 4_000 }, toolUse())
    const answer = await tool('many__ask').run({ question: '?' }, ask('many'))
    expect(answer).toBe('{"action":"cancel"}')
    expect(log).toContainEqual({ server: 'many', why: expect.stringContaining('several calls') })
    const both = ['a', 'b'].map((who) => tool('one__ask').run({ question: '?' }, ask(who)))
    const red = '{"action":"accept","content":{"colour":"red"}}'
    expect(await Promise.all(both)).toEqual([red, red])
    expect(asked).toEqual(['a', 'b'])
    await slow
  } finally {
    await mcp.close()
  }
})

test('a server that does not even start keeps nobody from stopping', async () => {
  const directory = await temporaryDirectory()
  const file = join(directory.path, 'pid')
  const script = `require('fs').writeFileSync(${JSON.stringify(file)}, String(process.pid)); setInterval(() => {}, 1000)`
  const mute = { command: process.execPath, args: ['-e', script] }
  const mcp = await openMcp({ mute }, { log: { info() {}, warn() {} }, wait: 300 })
  expect(mcp.tools()).toEqual([])
  await expect.poll(() => existsSync(file)).toBe(true)
  const pid = Number(readFileSync(file, 'utf8'))
  const started = Date.now()
  await mcp.close()
  expect(Date.now() - started).toBeLessThan(10_000)
  const lives = () => {
    try {
      return process.kill(pid, 0)
    } catch {
      return false
    }
  }
  await expect.poll(lives).toBe(false)
  await directory.remove()
})
