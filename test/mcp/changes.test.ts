import { describe, expect, test } from 'vitest'
import { chatsClient } from '../support/chats.ts'
import { allow, mcpOverHttp, mcpStage, withMcp } from '../support/mcp.ts'
import { names as eventNames, find } from '../support/tools.ts'

const result = (frames: Parameters<typeof find>[0]) => find(frames, 'tool_result').tool_output
const pay = (): [string, unknown] => ['till__pay', { to: 'ann', amount: 5 }]

describe.each(['stdio', 'http'])('tools that change, over %s', (how) => {
  test('a changed schema is told to the model, and voids what was remembered', async () => {
    const stage = await mcpStage()
    const till = how === 'http' ? { url: (await mcpOverHttp(stage)).url } : stage.stdio
    const server = await withMcp({ till }, pay)
    const stream = await server.start('c', 'pay')
    const ask = find(await stream.until('approval_required'), 'approval_required')
    const interaction = stream.response.headers.get('x-interaction-id')!
    const { approval_id } = ask
    await server.approve('c', interaction, { approval_id, approved: true, remember: true })
    await stream.rest()
    const second = await (await server.start('c', 'again')).rest()
    expect(eventNames(second)).not.toContain('approval_required')
    expect(stage.done()).toEqual(['ann 5', 'ann 5'])

    stage.amount({ type: 'number', maximum: 1_000_000 })
    const offered = () =>
      server.server.runtime.agents()[0]!.tools.find((one) => one.name === 'till__pay')
    const schema = () => JSON.stringify((offered()!.schema as { json: object }).json)
    await expect.poll(schema, { timeout: 10_000 }).toContain('1000000')
    const third = await server.start('c', 'and again')
    await third.until('approval_required')
    third.leave()
    expect(stage.done()).toHaveLength(2)
  })
})

test('an approval given before the schema changed does not run the changed tool (I11)', async () => {
  const stage = await mcpStage()
  const server = await withMcp({ till: stage.stdio }, pay)
  const stream = await server.start('c', 'pay')
  const ask = find(await stream.until('approval_required'), 'approval_required')
  stage.amount({ type: 'number', minimum: 1 })
  const schema = () => JSON.stringify(server.server.runtime.agents()[0]!.tools[0]!.schema)
  await expect.poll(schema, { timeout: 10_000 }).toContain('minimum')
  const interaction = stream.response.headers.get('x-interaction-id')!
  await server.approve('c', interaction, { approval_id: ask.approval_id, approved: true })
  expect(result(await stream.rest())).toMatch(/^The tool changed after this call was approved/)
  expect(stage.done()).toEqual([])
})

test('what one tenant leaves on a server, another does not find (I10)', async () => {
  const stage = await mcpStage()
  const use = (said: string): [string, unknown] =>
    said === 'recall' ? ['till__recall', {}] : ['till__note', { text: said }]
  const keys = 'key-of-ann-0123456=red/ann,key-of-bob-0123456=blue/bob,key-of-cat-0123456=red/cat'
  const env = { HOST: '127.0.0.1', HANDRAIL_API_KEYS: keys }
  const { url } = await withMcp({ till: stage.stdio }, use, { policy: allow }, { env })
  const as = (name: string) => {
    const client = chatsClient(url, { authorization: `Bearer key-of-${name}-0123456` })
    return async (text: string) => result(await (await client.start('c', text)).rest())
  }
  expect(await as('ann')('a secret of red')).toBe('noted')
  expect(await as('bob')('recall')).toBe('nothing')
  expect(await as('cat')('recall')).toBe('a secret of red')
  expect(await as('bob')('a secret of blue')).toBe('noted')
  expect(await as('ann')('recall')).toBe('a secret of red')
})

test('rules name servers, and only the tools that are wanted are there', async () => {
  const stage = await mcpStage()
  const reason = 'not from here'
  const server = await withMcp(
    {
      till: { ...stage.stdio, tools: ['pay', 'recall'] },
      other: { ...stage.stdio, tools: ['pay'] },
    },
    (said) => [said, { to: 'ann', amount: 1 }],
    { policy: [{ server: 'other', decision: 'deny', reason }, { decision: 'allow' }] },
  )
  const say = async (text: string) => result(await (await server.start('c', text)).rest())
  expect(await say('other__pay')).toBe('This call is not allowed: not from here')
  expect(await say('till__pay')).toBe('paid 1 to ann')
  const names = server.model.requests[0]!.tools.map(({ name }) => name)
  expect(names).toEqual(['till__pay', 'till__recall', 'other__pay'])
})
