import { describe, expect, test } from 'vitest'
import { converse, stateOf } from '../../../test/support/graphs.ts'
import { type Served, serve } from '../../../test/support/serve.ts'
import { sampleCrm } from '../../tools/zoho/sample.ts'
import { workflow } from '../workflow/agent.ts'
import { memoryAnalyst } from './memory-analyst.ts'
import { recommendationAuthor } from './recommendation-author.ts'
import { accountAnalysis } from './steps.ts'
import { zohoScout } from './zoho-scout.ts'

/** Runs an agent by its name, and approves what it asks. */
async function run(server: Served, chat: string, agent: string, text: string, approved = true) {
  await server.request('POST', '/chats', { id: chat, agent })
  const start = (id: string, said: string) =>
    server.open('POST', `/chats/${id}/interactions`, { user_message: said, agent })
  return await converse({ ...server, start }, chat, text, () => ({ approved }))
}

const answers = (frames: Awaited<ReturnType<typeof run>>['frames']) =>
  frames.filter(({ event }) => event === 'answer').map(({ data }) => data.content as string)

describe('the account analysis', () => {
  test('looks up, recalls, recommends and has it approved, with the demo model', async () => {
    const server = await serve()
    const { status, asked, frames } = await run(server, 'c', 'orchestrator', 'Analyse ACC-002')
    expect(status).toBe('COMPLETED')
    expect(asked.map(({ card }) => card.title)).toEqual([
      'Approve retention_call for ACC-002 (priority high)?',
    ])
    expect(answers(frames)[0]).toContain('sample data')
    expect(await stateOf(server, 'c')).toMatchObject({
      account_id: 'ACC-002',
      status: 'completed',
      agents_completed: ['zoho_scout', 'memory_analyst', 'recommendation_author'],
      account_snapshot: { name: 'Harbour Foods', source: 'sample' },
      historical_context: { mentions: [] },
      recommendations: [{ action_type: 'retention_call' }, { action_type: 'deal_follow_up' }],
      approval: { status: 'approved', approved_by: 'local' },
      errors: [],
    })
  })

  test('remembers an account by its name too', async () => {
    const server = await serve()
    await run(server, 'before', 'assistant', 'Echo harbour FOODS is not content')
    await run(server, 'c', 'orchestrator', 'Analyse ACC-002')
    const { historical_context: history } = (await stateOf(server, 'c')) as Record<string, object>
    expect(history).toMatchObject({ sessions: 1, cut: false })
    expect(JSON.stringify(history)).toContain('is not content')
  })

  test('remembers what its owner said of the account on other threads, and nothing of others', async () => {
    const keys = 'ann-key-0123456789=ann,bob-key-0123456789=bob'
    const server = await serve({}, { env: { HANDRAIL_API_KEYS: keys } })
    const as = (who: string) => ({ authorization: `Bearer ${who}-key-0123456789` })
    const say = async (who: string, chat: string, agent: string, user_message: string) => {
      const body = { user_message, agent }
      const stream = await server.open('POST', `/chats/${chat}/interactions`, body, as(who))
      return JSON.stringify(await stream.rest())
    }
    await say('ann', 'a1', 'assistant', 'Echo ACC-003 wants a reference')
    await say('bob', 'b1', 'assistant', 'Echo ACC-003 is a secret of mine')
    const recalled = await say('ann', 'a2', 'memory_analyst', 'What of ACC-003?')
    expect(recalled).toContain('spoken of 2 times in 1 earlier chats')
    expect(recalled).toContain('wants a reference')
    expect(recalled).not.toContain('a secret of mine')
    expect(await say('bob', 'b2', 'memory_analyst', 'What of acc-003?')).toContain('in 1 earlier')
  })

  test.each([
    ['zoho_scout', 'Fenwick Bank'],
    ['memory_analyst', 'not spoken of'],
    ['recommendation_author', 'account_review'],
  ])('can be run in part: %s', async (agent, words) => {
    const server = await serve()
    const { status, frames } = await run(server, 'c', agent, 'Please look at ACC-006')
    expect(status).toBe('COMPLETED')
    expect(answers(frames).at(-1)).toContain(words)
  })

  test('stops where there is no such account, with what there is', async () => {
    const server = await serve()
    const { status, frames } = await run(server, 'c', 'orchestrator', 'Analyse ACC-099')
    expect(status).toBe('FAILED')
    const { data } = frames.find(({ event }) => event === 'error')!
    expect(data.error).toContain('Critical agent zoho_scout failed')
    expect(data.error).toContain('ACC-001 to ACC-010')
    expect(await stateOf(server, 'c')).toMatchObject({ status: 'error', agents_completed: [] })
  })

  test('tried again, looks up again what could not be looked up', async () => {
    let calls = 0
    const sample = sampleCrm()
    const crm: typeof sample = {
      ...sample,
      account: async (id, signal) => {
        if (++calls === 1) throw new Error('The CRM is away.')
        return await sample.account(id, signal)
      },
    }
    const parts = [zohoScout(crm), memoryAnalyst(), recommendationAuthor()]
    const server = await serve({ agents: [workflow(accountAnalysis()), ...parts] })
    const { status, id } = await run(server, 'c', 'orchestrator', 'Analyse ACC-002')
    expect(status).toBe('FAILED')
    const again = await server.open('POST', `/chats/c/interactions/${id}/retry`)
    await again.until('approval_required')
    expect(await stateOf(server, 'c')).toMatchObject({
      account_snapshot: { name: 'Harbour Foods' },
    })
    expect(calls).toBe(2)
  })
})
