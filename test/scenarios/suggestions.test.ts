import { expect, test } from 'vitest'
import { toolLoop } from '../../src/agents/tool-loop/agent.ts'
import { scriptedModel } from '../../src/models/scripted.ts'
import { type Served, serve } from '../support/serve.ts'

type Agents = Record<string, { suggestions?: string[] }>

async function agentsOf(server: Served): Promise<Agents> {
  const info = await server.request('GET', '/copilotkit/info')
  return ((await info.json()) as { agents: Agents }).agents
}

test('every built-in agent offers suggestions that it can carry out', async () => {
  const server = await serve()
  const { default: first, ...agents } = await agentsOf(server)
  expect(first?.suggestions).toEqual(agents.assistant?.suggestions)
  expect(Object.keys(agents)).toHaveLength(5)
  for (const [agent, { suggestions = [] }] of Object.entries(agents)) {
    expect(suggestions, agent).not.toEqual([])
    for (const [i, user_message] of suggestions.entries()) {
      const path = `/chats/${agent}-${i}/interactions`
      const stream = await server.open('POST', path, { user_message, agent })
      const ends = new Set(['interaction_complete', 'approval_required'])
      for await (const { event, data } of stream.frames) {
        if (event === 'interaction_complete')
          expect([agent, user_message, data.status]).toEqual([agent, user_message, 'COMPLETED'])
        if (ends.has(event)) break
      }
      stream.leave()
    }
  }
})

test('suggestions are of the agent or of its settings, and need tools that the server has', async () => {
  const model = scriptedModel([])
  const own = toolLoop({ name: 'own', suggestions: ['Begin'] })
  const set = { agent: toolLoop({ name: 'set', suggestions: ['x'] }), suggestions: ['Start'] }
  const server = await serve({ model, agents: [own, set, toolLoop({ name: 'none' })] })
  const agents = await agentsOf(server)
  expect(agents.own?.suggestions).toEqual(['Begin'])
  expect(agents.set?.suggestions).toEqual(['Start'])
  expect(agents.none).not.toHaveProperty('suggestions')
  const bare = await agentsOf(await serve({ model, builtIns: false }))
  expect(bare.assistant?.suggestions).toEqual(['What can you do?'])
})

test('suggestions name no accounts of the sample CRM where a real CRM is connected', async () => {
  const env = {
    ZOHO_CLIENT_ID: 'id',
    ZOHO_CLIENT_SECRET: 'secret',
    ZOHO_REFRESH_TOKEN: 'token',
  }
  const agents = await agentsOf(await serve({}, { env }))
  expect(agents.zoho_scout).not.toHaveProperty('suggestions')
  expect(agents.orchestrator).not.toHaveProperty('suggestions')
})
