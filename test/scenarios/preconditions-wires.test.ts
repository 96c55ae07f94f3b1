import { expect, test } from 'vitest'
import { z } from 'zod'
import { toolLoop } from '../../src/agents/tool-loop/agent.ts'
import { workflow } from '../../src/agents/workflow/agent.ts'
import { defineTool } from '../../src/core/tool.ts'
import { call, scriptedModel, text } from '../../src/models/scripted.ts'
import { openPage } from '../clients/graphql/support.ts'
import { clients, interruptsOf } from '../clients/support.ts'
import { serve } from '../support/serve.ts'
import { find } from '../support/tools.ts'

/** A server with a tool that publishes one version of a page. */
async function publishing(more: object = {}) {
  const world = { version: 1, ran: [] as (string | undefined)[] }
  const tool = defineTool({
    name: 'publish',
    description: '',
    schema: z.strictObject({}),
    access: 'write',
    preview: async () => {
      const { version } = world
      return { kind: 'text', text: `version ${version}`, precondition: `v${version}` }
    },
    run: async (_input, { precondition }) => {
      world.ran.push(precondition)
      return 'Published.'
    },
  })
  const model = scriptedModel([[call('1', 'publish', {})], [text('Done.')]])
  return { server: await serve({ model, tools: [tool], builtIns: false, ...more }), world }
}

test.for(clients)(
  'AG-UI ($name): an approval of an outdated preview ends in a second interrupt with the new preview',
  async ({ open }) => {
    const { server, world } = await publishing()
    const client = await open(server.url, 't')
    const [first] = interruptsOf(await client.say('go'))
    const approve = (interruptId: string) =>
      client.run({ resume: [{ interruptId, status: 'resolved', payload: { approved: true } }] })
    world.version = 2
    const [second] = interruptsOf(await approve(first!.id))
    expect(second!.id).not.toBe(first!.id)
    expect(second!.metadata.card.preview.text).toBe('version 2')
    expect(world.ran).toEqual([])
    await approve(second!.id)
    expect(world.ran).toEqual(['v2'])
    expect(client.agent.pendingInterrupts).toEqual([])
  },
)

test('GraphQL: an approval of an outdated preview ends in a second interrupt with the new preview', async () => {
  const { server, world } = await publishing()
  const page = openPage(server.url)
  await page.say('go')
  const first = page.interrupt!.value as { askId: string }
  world.version = 2
  await page.resolve({ approved: true })
  const second = page.interrupt!.value as { askId: string; card: { preview: { text: string } } }
  expect(second.askId).not.toBe(first.askId)
  expect(second.card.preview.text).toBe('version 2')
  expect(world.ran).toEqual([])
  await page.resolve({ approved: true })
  expect(world.ran).toEqual(['v2'])
})

test('a step of a workflow asks again if the preview is outdated', async () => {
  const agents = [
    workflow({ name: 'flow', steps: [{ agent: 'inner', outputKey: 'in' }] }),
    toolLoop({ name: 'inner' }),
  ]
  const { server, world } = await publishing({ agents })
  const stream = await server.start('c', 'go')
  const asked = async () => find(await stream.until('approval_required'), 'approval_required')
  const decide = async (id: string, digest: string) =>
    (await server.request('POST', `/approvals/${id}`, { approved: true, digest })).status
  const first = await asked()
  world.version = 2
  expect(await decide(first.approval_id, first.card.digest)).toBe(200)
  const second = await asked()
  expect(second.card).toMatchObject({ preview: { text: 'version 2' }, replaces: first.approval_id })
  expect(await decide(second.approval_id, first.card.digest)).toBe(409)
  expect(world.ran).toEqual([])
  expect(await decide(second.approval_id, second.card.digest)).toBe(200)
  await stream.rest()
  expect(world.ran).toEqual(['v2'])
})
