import type { ServerResponse } from 'node:http'
import { describe, expect, test } from 'vitest'
import { allow, withMcp } from '../support/mcp.ts'
import { answer, oddMcp, stream } from '../support/odd-mcp.ts'
import { names as eventNames, find } from '../support/tools.ts'

const schema = { type: 'object' }
const go = { name: 'go', inputSchema: schema }
const use = (): [string, unknown] => ['odd__go', {}]

test('a tool that is listed wrong is left out by name, and the others are there', async () => {
  const evil = { type: 'object', properties: { a: { type: 'string', pattern: '(a)\\1' } } }
  const url = await oddMcp({
    tools: [
      { name: 'text_schema', inputSchema: 'str' },
      { name: 'no_schema' },
      { name: 'list_schema', inputSchema: { type: 'array' } },
      { name: 'unread_pattern', inputSchema: evil },
      { name: 'told_oddly', description: 5, inputSchema: schema },
      { inputSchema: schema },
      'tool',
      null,
      go,
    ],
    call: (id, response) => {
      stream(response, `data: ${answer(id)}\n\n`)
      response.end()
    },
  })
  const left: unknown[] = []
  const warn = (about: object, message: string) =>
    void (message === 'an MCP tool is left out' && left.push((about as { tool: string }).tool))
  const log = { info() {}, warn, error: warn }
  const server = await withMcp({ odd: { url } }, use, { policy: allow }, { log })
  expect(server.server.runtime.agents()[0]!.tools.map(({ name }) => name)).toEqual(['odd__go'])
  expect(left).toEqual([
    ...['text_schema', 'no_schema', 'list_schema', 'unread_pattern', 'told_oddly'],
    ...['', '', ''],
  ])
  const frames = await (await server.start('c', 'go')).rest()
  expect(find(frames, 'tool_result').tool_output).toBe('done')
})

describe('an answer that ends before it is whole', () => {
  const cut = (response: ServerResponse) => void setTimeout(() => response.destroy(), 50)
  const token = 'id: 1\ndata: \n\n'

  test.each<[string, (id: number, response: ServerResponse) => void]>([
    [
      'is cut in the middle of an event',
      (_, response) => {
        stream(response, 'event: message\nda')
        cut(response)
      },
    ],
    [
      'ends with nothing said',
      (_, response) => {
        stream(response)
        response.end()
      },
    ],
    [
      'answers something else',
      (_, response) => {
        response.writeHead(200, { 'content-type': 'application/json' })
        response.end(answer(9_999))
      },
    ],
    [
      'could go on, and then cannot',
      (_, response) => {
        stream(response, 'retry: 20\n', token)
        response.end()
      },
    ],
  ])('that %s: a person is asked whether it happened (I4)', async (_, call) => {
    let calls = 0
    const url = await oddMcp({
      tools: [go],
      call: (id, response) => {
        calls++
        call(id, response)
      },
      resume: (response) => void response.writeHead(404).end(),
    })
    const server = await withMcp({ odd: { url, timeout: 3_000 } }, use, { policy: allow })
    const asked = await server.start('c', 'go')
    const ask = find(await asked.until('approval_required'), 'approval_required')
    expect(ask).toMatchObject({ kind: 'in_doubt', tool_name: 'odd__go' })
    const lost = 'The connection to the MCP server was lost during the call.'
    expect(ask.card.evidence).toEqual({ error: lost })
    const interaction = asked.response.headers.get('x-interaction-id')!
    await server.approve('c', interaction, { approval_id: ask.approval_id, outcome: 'skip' })
    await asked.rest()
    expect(calls).toBe(1)
  })

  test('and goes on elsewhere is read there', async () => {
    let called = 0
    const url = await oddMcp({
      tools: [go],
      call: (id, response) => {
        called = id
        stream(response, 'retry: 20\n', token)
        response.end()
      },
      resume: (response) => stream(response, `id: 2\ndata: ${answer(called, 'late')}\n\n`),
    })
    const server = await withMcp({ odd: { url, timeout: 5_000 } }, use, { policy: allow })
    const frames = await (await server.start('c', 'go')).rest()
    expect(find(frames, 'tool_result').tool_output).toBe('late')
    expect(eventNames(frames)).not.toContain('approval_required')
  })
})

describe('a call of an MCP tool', () => {
  const answers = async (status: number, sessions = true) => {
    const calls: number[] = []
    const url = await oddMcp({
      tools: [go],
      sessions,
      call: (id, response) => {
        calls.push(id)
        if (calls.length === 1) return void response.writeHead(status).end('upstream')
        stream(response, `data: ${answer(id)}\n\n`)
        response.end()
      },
    })
    const server = await withMcp({ odd: { url, timeout: 1_000 } }, use, { policy: allow })
    return { calls, asked: await server.start('c', 'go') }
  }

  test.each([408, 500, 502, 503, 504])(
    'that is answered with %i is made once, and a person says whether it happened (I4)',
    async (status) => {
      const { calls, asked } = await answers(status)
      const ask = find(await asked.until('approval_required'), 'approval_required')
      expect(ask).toMatchObject({ kind: 'in_doubt', tool_name: 'odd__go' })
      expect(calls).toHaveLength(1)
    },
  )

  test.each([400, 425, 429])(
    'that is refused with %i has failed, and nobody is asked',
    async (status) => {
      const { calls, asked } = await answers(status)
      const frames = await asked.rest()
      expect(find(frames, 'tool_result').tool_output).toContain('upstream')
      expect(eventNames(frames)).not.toContain('approval_required')
      expect(calls).toHaveLength(1)
    },
  )

  test('that is answered with 404 is made again only in a new session', async () => {
    const gone = await answers(404)
    expect(find(await gone.asked.rest(), 'tool_result').tool_output).toBe('done')
    expect(gone.calls).toHaveLength(2)
    const without = await answers(404, false)
    await without.asked.rest()
    expect(without.calls).toHaveLength(1)
  })
})
