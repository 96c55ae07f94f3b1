import { expect, test } from 'vitest'
import { serve } from '../test/support/serve.ts'
import { find, names, said, tools } from '../test/support/tools.ts'
import { toolLoop } from './agents/tool-loop/agent.ts'
import { call, scriptedModel, text } from './models/scripted.ts'
import type { AgentSettings } from './settings.ts'

/** An agent that sends money and says that it has. */
async function sender(
  given: Partial<AgentSettings>,
  policy: { tool: string; decision: 'deny' }[] = [],
) {
  const box = tools()
  const model = scriptedModel([[call('1', 'send', { to: 'ann', amount: 5 })], [text('Done.')]])
  const agent = toolLoop({ name: 'sender', system: `You send money. ${'x'.repeat(300)}` })
  const agents = [{ agent, tools: box.all, ...given }]
  return { ...box, model, server: await serve({ model, agents, policy, builtIns: false }) }
}

test.each([
  [{}, 'approval_required', 0],
  [{ permissionMode: 'acceptEdits' as const }, 'interaction_complete', 1],
  [{ permissionMode: 'bypassPermissions' as const }, 'interaction_complete', 1],
  [{ permissionMode: 'plan' as const }, 'interaction_complete', 0],
  [{ toolPermissions: { send: 'allow' as const } }, 'interaction_complete', 1],
  [{ toolPermissions: { send: ['read' as const] } }, 'interaction_complete', 0],
])('permissions %o lead to %s', async (given, event, times) => {
  const { server, sent } = await sender(given)
  await (await server.start('c', 'pay')).until(event)
  expect(sent.length).toBe(times)
})

test('what the policy denies, no mode allows', async () => {
  const deny = [{ tool: 'send', decision: 'deny' as const }]
  const { server, sent, model } = await sender({ permissionMode: 'bypassPermissions' }, deny)
  await (await server.start('c', 'pay')).rest()
  expect(sent).toEqual([])
  expect(said(model.requests[1]).at(-1)).toContain('not allowed')
})

test('tools that are not among the allowed are neither offered nor run', async () => {
  const { server, sent, model } = await sender({ allowedTools: ['look'] })
  const frames = await (await server.start('c', 'pay')).rest()
  expect(names(frames)).not.toContain('approval_required')
  expect(model.requests[0]!.tools.map(({ name }) => name)).toEqual(['look'])
  expect(sent).toEqual([])
  expect(JSON.stringify(find(frames, 'tool_result'))).toContain('no tool named send')
})

test('an agent is described by its settings, or by how it is told to be', async () => {
  const { server } = await sender({ version: '2.1' })
  const { agents } = await (await server.request('GET', '/copilotkit/status')).json()
  expect(agents[0]).toMatchObject({ name: 'sender', version: '2.1' })
  expect(agents[0].description).toMatch(/^You send money\. x{184}$/)
  const other = await sender({ description: 'Pays' })
  const info = await (await other.server.request('GET', '/copilotkit/info')).json()
  expect(info.agents.sender.description).toBe('Pays')
})

test('a mode that there is not is told at the start', async () => {
  await expect(sender({ permissionMode: 'yolo' as never })).rejects.toThrow('sender.permissionMode')
})
