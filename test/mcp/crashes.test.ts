import { describe, expect, test } from 'vitest'
import { allow, mcpOverHttp, mcpStage, withMcp } from '../support/mcp.ts'
import type { Served } from '../support/serve.ts'
import { startServer, temporaryDirectory } from '../support/server.ts'
import { names as eventNames, find } from '../support/tools.ts'

const result = (frames: Parameters<typeof find>[0]) => find(frames, 'tool_result').tool_output

/** Starts, and reads up to the question whether it happened. */
async function inDoubt(server: Served, text = 'go') {
  const stream = await server.start('c', text)
  const frames = await stream.until('approval_required')
  const ask = find(frames, 'approval_required')
  const interaction = stream.response.headers.get('x-interaction-id')!
  return { stream, ask, interaction }
}

describe.each(['stdio', 'http'])(
  'a server over %s that is killed in the middle of a call',
  (how) => {
    test('a person is asked whether it happened, and it is not made again by itself (I4)', async () => {
      const stage = await mcpStage()
      const away = how === 'http' ? await mcpOverHttp(stage) : undefined
      const till = away ? { url: away.url, timeout: 4_000 } : stage.stdio
      const use = (said: string): [string, unknown] =>
        said === 'recall' ? ['till__recall', {}] : ['till__pay_and_die', { to: 'ann' }]
      const server = await withMcp({ till }, use, { policy: allow })
      const { stream, ask, interaction } = await inDoubt(server)
      expect(ask).toMatchObject({ kind: 'in_doubt', tool_name: 'till__pay_and_die' })
      expect(ask.card.evidence).toEqual({
        error: 'The connection to the MCP server was lost during the call.',
      })
      const { approval_id } = ask
      const answer = { approval_id, outcome: 'happened', result: 'She has it.' }
      await server.approve('c', interaction, answer)
      expect(result(await stream.rest())).toBe('She has it.')
      expect(stage.done()).toEqual(['ann'])
      if (away) await mcpOverHttp(stage, away.port)
      // The next call has a new server, or the same that is there again.
      const again = async () => result(await (await server.start('c', 'recall')).rest())
      await expect.poll(again, { timeout: 10_000 }).toBe('nothing')
    })
  },
)

test('what is idempotent is told as an error, for the model to try again', async () => {
  const stage = await mcpStage()
  const till = await mcpOverHttp(stage)
  const use = (): [string, unknown] => ['till__slow', { ms: 20_000 }]
  const server = await withMcp({ till: { url: till.url, trust: true } }, use)
  const stream = await server.start('c', 'go')
  await stream.until('tool_output')
  await till.kill()
  const frames = await stream.rest()
  expect(result(frames)).toMatch(/^Error executing tool: The connection to the MCP server was lost/)
  expect(eventNames(frames)).not.toContain('approval_required')
})

test('a server that is down at the start stops nobody, and its tools come when it does', async () => {
  const stage = await mcpStage()
  const first = await mcpOverHttp(stage)
  await first.kill()
  const use = (): [string, unknown] => ['till__recall', {}]
  const started = Date.now()
  const server = await withMcp({ till: { url: first.url } }, use, { policy: allow })
  expect(Date.now() - started).toBeLessThan(15_000)
  const recall = async () => result(await (await server.start('c', 'go')).rest())
  expect(await recall()).toBe('There is no tool named till__recall.')
  await mcpOverHttp(stage, first.port)
  await expect.poll(recall, { timeout: 40_000, interval: 500 }).toBe('nothing')
}, 120_000)

test('our own crash in the middle of a call: asked after the restart, also while the server is away', async () => {
  const stage = await mcpStage()
  const till = await mcpOverHttp(stage)
  const directory = await temporaryDirectory()
  const config = new URL('./handrail.config.mjs', import.meta.url).pathname
  const env = {
    HANDRAIL_DATA: directory.path,
    HANDRAIL_SPOOL: `${directory.path}/spool`,
    HANDRAIL_CONFIG: config,
    HANDRAIL_LEASE_MS: '1000',
    TEST_MCP_URL: till.url,
  }
  const { chatsClient } = await import('../support/chats.ts')
  const first = await startServer(env)
  const stream = await chatsClient(first.url).start('c', 'slow')
  await stream.until('tool_output')
  const interaction = stream.response.headers.get('x-interaction-id')!
  await first.kill()
  await till.kill()
  const second = await startServer(env)
  const client = chatsClient(second.url)
  const joined = await client.join('c', interaction)
  const ask = find(await joined.until('approval_required'), 'approval_required')
  expect(ask).toMatchObject({ kind: 'in_doubt', tool_name: 'till__slow' })
  await client.approve('c', interaction, { approval_id: ask.approval_id, outcome: 'skip' })
  const frames = await joined.rest()
  expect(result(frames)).toMatch(/Whether it happened is not known; it was skipped/)
  await second.stop()
  await directory.remove()
}, 120_000)
