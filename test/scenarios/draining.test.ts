import { once } from 'node:events'
import { connect } from 'node:net'
import { expect, test } from 'vitest'
import { call, scriptedModel, text } from '../../src/models/scripted.ts'
import { gate } from '../support/gate.ts'
import { serve } from '../support/serve.ts'
import { temporaryDirectory } from '../support/server.ts'
import { find, names, tools } from '../support/tools.ts'

const steps = [[call('1', 'look', { at: 'sea' })], [text('Blue.')]]

test('a server that stops hands its leg over before the next effect, and cuts none', async () => {
  const { path: data, remove } = await temporaryDirectory()
  const inside = gate()
  const { look } = tools()
  const tool = { ...look, run: async () => inside.pass().then(() => 'saw sea') }
  const model = scriptedModel(steps)
  const settings = { model, tools: [tool], builtIns: false }
  const first = await serve(settings, { data, env: { HANDRAIL_DRAIN_MS: '10000' } })
  const stream = await first.start('c', 'look')
  await inside.reached
  const closing = first.close()
  await expect(async () => {
    for (;;) await first.request('GET', '/readyz')
  }).rejects.toThrow() // nobody is let in any more
  inside.open()
  const shown = await stream.rest()
  await closing
  expect(names(shown).at(-1)).toBe('tool_result')
  expect(stream.retry).toBeGreaterThan(0)
  expect(model.requests).toHaveLength(1)

  const second = await serve(settings, { data })
  const id = stream.response.headers.get('x-interaction-id')!
  const rest = await (await second.join('c', id, shown.at(-1)!.id)).rest()
  expect(find(rest, 'answer').content).toBe('Blue.')
  const kinds = (await second.journal('c')).map(({ kind }) => kind)
  expect(kinds).not.toContain('effect.unknown')
  expect(kinds).not.toContain('message.retracted')
  expect(kinds.filter((kind) => kind === 'run.started')).toHaveLength(2)
  await second.close()
  await remove()
})

test('a server that stops says so at once, and serves until the others have heard', async () => {
  const model = scriptedModel(() => [text('Blue.')])
  const server = await serve({ model, builtIns: false }, { env: { HANDRAIL_GRACE_MS: '1500' } })
  expect((await server.request('GET', '/readyz')).status).toBe(200)
  const closing = server.close()
  await expect.poll(async () => (await server.request('GET', '/readyz')).status).toBe(503)
  const { response, leave } = await server.start('c', 'the sea?')
  expect(response.status).toBe(200)
  expect(response.headers.get('connection')).toBe('close')
  leave()
  await closing
  const knock = connect(Number(new URL(server.url).port), '127.0.0.1')
  await expect(once(knock, 'connect')).rejects.toThrow('ECONNREFUSED')
})
