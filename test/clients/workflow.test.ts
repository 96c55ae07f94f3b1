import { describe, expect, test } from 'vitest'
import { serve } from '../support/serve.ts'
import { warpClock } from '../support/warp-clock.ts'
import { clients, finished, interruptsOf } from './support.ts'

const agentId = 'orchestrator'

describe.for(clients)('the account analysis, on $name', ({ open }) => {
  test.for([true, false])('goes from question to end, approved: %s', async (approved) => {
    const server = await serve()
    const client = await open(server.url, 't', { agentId })
    const asked = interruptsOf(await client.say('Analyse ACC-002'))
    expect(asked.map(({ message }) => message)).toEqual([
      'Approve retention_call for ACC-002 (priority high)?',
    ])
    const { pendingInterrupts } = client.agent
    const resume = pendingInterrupts.map(({ id: interruptId }) => {
      return { interruptId, status: 'resolved' as const, payload: { approved } }
    })
    finished(await client.run({ resume }))
    expect(client.agent.state).toMatchObject({
      status: 'completed',
      agents_completed: ['zoho_scout', 'memory_analyst', 'recommendation_author'],
      approval: { status: approved ? 'approved' : 'rejected' },
    })
    expect(client.shown().join('\n')).toContain('Harbour Foods')
    expect(client.errors).toEqual([])
    const fresh = await open(server.url, 't', { agentId })
    await fresh.connect()
    expect(fresh.shown()).toEqual(client.shown())
    expect(fresh.agent.state).toEqual(client.agent.state)
  })

  test('fails where a required step does, and keeps what there is', async () => {
    const server = await serve()
    const client = await open(server.url, 't', { agentId })
    await client.say('Analyse ACC-099').catch(() => {})
    expect(client.errors.length).toBe(1)
    expect(client.agent.state).toMatchObject({
      status: 'error',
      failed_agents: ['zoho_scout'],
      errors: [{ agent: 'zoho_scout', critical: true }],
    })
  })

  test('ends with a timeout when nobody answers', async () => {
    const clock = warpClock()
    const server = await serve({}, { clock })
    const client = await open(server.url, 't', { agentId })
    await client.say('Analyse ACC-002')
    clock.advance(301_000)
    await server.recorded('t', 'run.completed')
    const fresh = await open(server.url, 't', { agentId })
    await fresh.connect()
    expect(fresh.agent.state).toMatchObject({ approval: { status: 'timeout' } })
  })
})
