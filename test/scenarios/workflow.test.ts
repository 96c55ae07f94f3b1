import { describe, expect, test } from 'vitest'
import { memoryAnalyst } from '../../src/agents/account-analysis/memory-analyst.ts'
import { recommendationAuthor } from '../../src/agents/account-analysis/recommendation-author.ts'
import { accountAnalysis } from '../../src/agents/account-analysis/steps.ts'
import { zohoScout } from '../../src/agents/account-analysis/zoho-scout.ts'
import { workflow } from '../../src/agents/workflow/agent.ts'
import { RuntimeError } from '../../src/core/errors.ts'
import { sampleCrm } from '../../src/tools/zoho/sample.ts'
import type { Frame, Stream } from '../support/chats.ts'
import { type Served, serve } from '../support/serve.ts'
import { names } from '../support/tools.ts'
import { warpClock } from '../support/warp-clock.ts'

const analyse = (server: Served, account_id = 'ACC-002', session_id = 's') =>
  server.open('POST', '/agent-orchestrator', { account_id, session_id, user_message: 'Analyse it' })

const decide = (server: Served, id: string, body: object) =>
  server.request('POST', `/copilotkit/approval/${id}`, body)

const data = (frames: readonly Frame[], event: string) =>
  frames.filter((one) => one.event === event).map((one) => one.data.data)

async function upToApproval(stream: Stream) {
  const before = await stream.until('approval_required')
  return { before, approval: data(before, 'approval_required')[0] }
}

/** Without what agents say in between. */
const outline = (frames: readonly Frame[]) =>
  names(frames).filter((name) => name !== 'agent_stream' && name !== 'agent_state_changed')

const stepEvents = ['agent_started', 'tool_call', 'tool_result', 'agent_completed']

describe('the workflow wire', () => {
  test('tells the account analysis from its start to its approval and its end', async () => {
    const server = await serve()
    const stream = await analyse(server)
    expect(stream.response.headers.get('x-session-id')).toBe('s')
    const { before, approval } = await upToApproval(stream)
    expect(outline(before)).toEqual([
      ...stepEvents,
      ...stepEvents,
      'agent_started',
      'agent_completed',
      'approval_required',
    ])
    expect(before[0]!.data).toMatchObject({
      event: 'agent_started',
      session_id: 's',
      run_id: stream.response.headers.get('x-run-id'),
      data: { agent: 'zoho_scout', step: 1, task: 'Look up the account.' },
    })
    expect(data(before, 'tool_result')[0]).toMatchObject({
      tool_name: 'crm_account',
      success: true,
      error: null,
      result: { name: 'Harbour Foods', source: 'sample' },
    })
    expect(data(before, 'agent_stream').map(({ agent }) => agent)).toEqual([
      'zoho_scout',
      'memory_analyst',
      'recommendation_author',
    ])
    expect(approval).toMatchObject({
      session_id: 's',
      recommendation: { account_id: 'ACC-002', action_type: 'retention_call', priority: 'high' },
      timeout_seconds: 300,
      timeout_hours: 1,
    })
    const waiting = await (await server.request('GET', '/copilotkit/status?session_id=s')).json()
    expect(waiting).toMatchObject({
      workflow_status: 'running',
      agents: { orchestrator: { status: 'running' }, zoho_scout: { status: 'completed' } },
      shared_context: { zoho_scout_output: { name: 'Harbour Foods' } },
      approval_requests: [{ approval_id: approval.approval_id, status: 'pending' }],
    })
    const body = { action: 'approve', user_id: 'someone' }
    const response = await decide(server, approval.approval_id, body)
    expect([response.status, await response.json()]).toEqual([200, { success: true }])
    const after = await stream.rest()
    expect(outline(after)).toEqual(['approval_response', 'workflow_completed'])
    const [{ workflow: name, account_id, final_output }] = data(after, 'workflow_completed')
    expect({ name, account_id }).toEqual({ name: 'account_analysis', account_id: 'ACC-002' })
    expect(final_output).toMatchObject({
      status: 'completed',
      account_id: 'ACC-002',
      workflow: 'account_analysis',
      agents_completed: ['zoho_scout', 'memory_analyst', 'recommendation_author'],
      results: {
        account_snapshot: { name: 'Harbour Foods' },
        historical_context: { account_id: 'ACC-002' },
        recommendations: [{ action_type: 'retention_call' }, {}],
      },
      approval: { approval_id: approval.approval_id, status: 'approved', approved_by: 'local' },
      errors: [],
      failed_agents: [],
    })
    expect(final_output.metrics.token_usage.recommendation_author.output_tokens).toBeGreaterThan(0)
    const again = await decide(server, approval.approval_id, { action: 'reject', user_id: 'x' })
    expect([again.status, await again.json()]).toMatchObject([
      400,
      { success: false, error: { code: 'ask_settled' } },
    ])
  })

  test('is read again, from the start or from any frame, with the same events', async () => {
    const server = await serve()
    const stream = await analyse(server)
    const { before, approval } = await upToApproval(stream)
    await decide(server, approval.approval_id, { action: 'approve' })
    const live = [...before, ...(await stream.rest())]
    const join = async (after: string) =>
      await (await server.open('GET', `/agent-orchestrator?session_id=s${after}`)).rest()
    const replayed = await join('')
    expect(outline(replayed)).toEqual(outline(live))
    expect(await join(`&after=${before[5]!.id}`)).toEqual(replayed.slice(6))
  })

  test('says how an approval ended', async () => {
    const clock = warpClock()
    const server = await serve({}, { clock })
    const rejected = await analyse(server)
    const { approval } = await upToApproval(rejected)
    await decide(server, approval.approval_id, { action: 'reject', user_id: 'x' })
    const { approval_id } = approval
    expect(data(await rejected.rest(), 'approval_response')).toEqual([
      { approval_id, status: 'rejected', reason: 'No reason provided' },
    ])
    const late = await analyse(server, 'ACC-002', 'late')
    await upToApproval(late)
    await server.recorded('late', 'run.waiting')
    clock.advance(301_000)
    expect(data(await late.rest(), 'approval_timeout')[0]).toMatchObject({ timeout_seconds: 300 })
  })

  test.each([
    [true, ['running', 'running', 'running', 'failed']],
    [false, ['running', 'running', 'running', 'failed', 'failed', 'failed']],
  ])(
    'tells of a step that fails, and how the whole stands by the rule of the session; required: %s',
    async (required, statuses) => {
      const broken = {
        ...memoryAnalyst(),
        // biome-ignore lint/correctness/useYield: it fails at once
        async *run() {
          throw new RuntimeError('agent_failed', 'out of memory')
        },
      }
      const optional = required ? [] : (['memory_analyst'] as const)
      const agents = [
        workflow(accountAnalysis({ optional })),
        zohoScout(sampleCrm()),
        broken,
        recommendationAuthor(),
      ]
      const server = await serve({ agents })
      const session = async () =>
        (await (await server.request('GET', '/copilotkit/status?session_id=s')).json()) as {
          workflow_status: string
        }
      const stream = await analyse(server)
      const frames: Frame[] = []
      for await (const frame of stream.frames) {
        frames.push(frame)
        if (frame.event !== 'approval_required') continue
        expect((await session()).workflow_status).toBe('failed')
        await decide(server, frame.data.data.approval_id, { action: 'approve' })
      }
      expect(data(frames, 'agent_error')[0]).toEqual({
        ...{ agent: 'memory_analyst', step: 2, error_message: 'out of memory' },
        ...{ code: 'agent_failed', critical: required, retrying: false },
      })
      const told = (list: readonly Frame[]) =>
        data(list, 'agent_state_changed').map(({ workflow_status }) => workflow_status)
      expect(told(frames)).toEqual(statuses)
      const at = frames.findIndex(({ event }) => event === 'agent_error')
      const later = await server.open(
        'GET',
        `/agent-orchestrator?session_id=s&after=${frames[at]!.id}`,
      )
      expect(told(await later.rest()), 'also to who comes later').toEqual(statuses.slice(3))
      const [{ final_output }] = data(frames, 'workflow_completed')
      expect(final_output).toMatchObject(
        required
          ? {
              status: 'error',
              message: 'Critical agent memory_analyst failed',
              error: 'out of memory',
              code: 'agent_failed',
              partial_results: { account_snapshot: {}, agents_completed: ['zoho_scout'] },
            }
          : { status: 'completed', failed_agents: ['memory_analyst'] },
      )
    },
  )

  test('runs any other agent too, in the same events', async () => {
    const server = await serve()
    const messages = [{ role: 'user', content: "What's the weather in Lisbon?" }]
    const stream = await server.open('POST', '/copilotkit/chat', { messages })
    const frames = await stream.rest()
    expect([...new Set(outline(frames))]).toEqual([
      'agent_started',
      'thinking',
      'tool_call',
      'tool_result',
      'agent_completed',
      'workflow_completed',
    ])
    const text = data(frames, 'agent_stream').map(({ content }) => content)
    const output = data(frames, 'agent_completed')[0].output
    expect(output).toContain('Lisbon: 22 °C')
    expect(text.join('')).toBe(`Let me look up the weather in Lisbon. ${output}`)
    expect(frames[0]!.data.session_id).toMatch(/^session_/)
  })

  test('a message again streams the run it began; another under its id is refused', async () => {
    const server = await serve()
    const say = (content: string) => {
      const messages = [{ id: 'm1', role: 'user', content }]
      return server.open('POST', '/copilotkit/chat', { messages, session_id: 's' })
    }
    const first = await (await say('Hello')).rest()
    expect(outline(await (await say('Hello')).rest())).toEqual(outline(first))
    const messages = [{ id: 'm1', role: 'user', content: 'Goodbye' }]
    const refused = await server.request('POST', '/copilotkit/chat', { messages, session_id: 's' })
    expect(refused.status).toBe(400)
    expect(await refused.json()).toMatchObject({
      error: { code: 'invalid_request', field: 'messages', message: expect.stringContaining('m1') },
    })
  })

  test('lists its agents', async () => {
    const server = await serve()
    const { agents } = (await (await server.request('GET', '/copilotkit/status')).json()) as {
      agents: { name: string; tools: string[] }[]
    }
    expect(agents.map(({ name }) => name)).toEqual([
      'assistant',
      'orchestrator',
      'zoho_scout',
      'memory_analyst',
      'recommendation_author',
    ])
    expect(agents[2]!.tools).toEqual(['crm_account'])
  })
})

test('the same key again is the same run, also where no session was named', async () => {
  const server = await serve()
  const ask = async (user_message = 'Analyse it') =>
    await fetch(`${server.url}/agent-orchestrator`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': 'k' },
      body: JSON.stringify({ account_id: 'ACC-002', user_message }),
    })
  const [one, two] = [await ask(), await ask()]
  const named = (response: Response) =>
    ['x-session-id', 'x-run-id'].map((name) => response.headers.get(name))
  expect(named(two)).toEqual(named(one))
  expect((await ask('Something else')).status).toBe(422)
  for (const response of [one, two]) await response.body?.cancel()
})
