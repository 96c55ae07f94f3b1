import { existsSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { aguiAgent } from '../../src/agents/remote/agui/agent.ts'
import { serve } from '../support/serve.ts'
import { find, names } from '../support/tools.ts'
import { ask, interactionOf } from './support.ts'

/** Handrail as the remote of Handrail: both durable, one behind the other. */
async function both(env: Record<string, string> = {}) {
  const inner = await serve({}, { env })
  const url = `${inner.url}/copilotkit/agent/default/run`
  const outer = await serve({ agents: [aguiAgent({ name: 'inner', url })] })
  const threads = async () => {
    const list = (await inner.request('GET', '/chats')).json() as Promise<{
      chats: { chat_id: string; status: string }[]
    }>
    return (await list).chats
  }
  return { inner, outer, threads }
}

describe('Handrail as the remote of Handrail', () => {
  test('one chat here is one chat there', async () => {
    const { outer, threads } = await both()
    const frames = await ask(outer, 'c', 'What can you do?')
    expect(find(frames, 'answer').content).toContain('demo')
    await ask(outer, 'c', 'Thanks')
    expect(await threads()).toHaveLength(1)
  })

  test('an approval there is an approval here, and the answer runs the tool there', async () => {
    const { inner, outer } = await both()
    const stream = await outer.start('c', 'Write a file named far.txt with the text hello')
    const { approval_id, kind } = find(await stream.until('approval_required'), 'approval_required')
    expect(kind).toBe('approval')
    expect(existsSync(`${inner.data}/files/default/local/far.txt`)).toBe(false)
    await outer.approve('c', interactionOf(stream.response), { approval_id, approved: true })
    const frames = await stream.rest()
    expect(find(frames, 'interaction_complete').status).toBe('COMPLETED')
    expect(existsSync(`${inner.data}/files/default/local/far.txt`)).toBe(true)
    expect(find(frames, 'tool_result').tool_output).toContain('far.txt')
  })

  test('cancel here cancels there', async () => {
    const { outer, threads } = await both({ HANDRAIL_DEMO_DELAY_MS: '100' })
    const stream = await outer.start('c', 'Be slow')
    await stream.until('answer_delta')
    await outer.cancel('c', interactionOf(stream.response))
    expect(names(await stream.rest())).toContain('cancelled')
    const [thread] = await threads()
    expect(thread).toBeDefined()
    await expect
      .poll(async () => JSON.stringify(await threads()), { timeout: 10_000 })
      .not.toContain('running')
  })
})
