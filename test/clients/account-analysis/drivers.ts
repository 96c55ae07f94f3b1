import { expect } from 'vitest'
import { chatsClient, type Frame, type Stream } from '../../support/chats.ts'
import { openPage } from '../graphql/page.ts'
import { type Client, coreClient, httpClient } from '../support.ts'
import { type Driver, fromOutput, fromState, type Json, type Seen } from './seen.ts'
import { Told, until } from './told.ts'

const agentId = 'orchestrator'

/** The workflow API, by fetch. */
export async function workflowDriver(url: string): Promise<Driver> {
  const client = chatsClient(url)
  const told = new Told()
  let stream: Stream
  let approval: string
  const take = ({ event, data: { data } }: Frame) => {
    told.take(event, data)
    if (event === 'agent_stream') told.say(`${data.agent}: ${data.content}`)
    if (event === 'approval_required') told.set({ recommendation: data.recommendation.action_type })
    if (event === 'approval_response' || event === 'approval_timeout')
      told.set({ recommendation: undefined })
    if (event === 'agent_error' && data.critical) told.set({ failure: data.error_message })
  }
  const session = async (): Promise<Json> =>
    await (await client.request('GET', '/copilotkit/status?session_id=t')).json()
  const read = async (): Promise<Seen> => {
    const last = await until(stream.frames, take, ['approval_required'])
    const { agents, approval_requests } = await session()
    approval = last?.data.data.approval_id
    const pending = approval_requests.find((one: Json) => one.approval_id === approval)
    if (last && pending.status !== 'pending') return await read() // of before
    const { orchestrator, ...parts } = agents
    const seen = told.now(last ? 'waiting' : orchestrator.status)
    const standing = Object.entries<Json>(parts).map(([name, { status }]) => [name, status])
    expect(seen.agents, 'the session says the same').toEqual(Object.fromEntries(standing))
    return seen
  }
  return {
    async start(account_id) {
      const body = { account_id, session_id: 't', user_message: 'Analyse it' }
      stream = await client.open('POST', '/agent-orchestrator', body)
      return await read()
    },
    async decide(approved, reason) {
      const body = { action: approved ? 'approve' : 'reject', user_id: 'someone', reason }
      const response = await client.request('POST', `/copilotkit/approval/${approval}`, body)
      expect(await response.json()).toEqual({ success: true })
      return await read()
    },
    follow: read,
    async join() {
      stream = await client.open('GET', '/agent-orchestrator?session_id=t')
      return await read()
    },
  }
}

/** The chats API, by fetch. Who comes later reads the interaction as one document. */
export async function chatsDriver(url: string): Promise<Driver> {
  const client = chatsClient(url)
  const told = new Told()
  let stream: Stream
  let run: string
  let approval: string
  const take = ({ event, data }: Frame) => {
    told.take(event, data)
    if (event === 'answer') told.say(`${data.path ?? agentId}: ${data.content}`)
    if (event === 'error') told.set({ failure: data.error })
    if (event === 'approval_required') told.set({ recommendation: putUp(data) })
    if (event === 'approved' || event === 'rejected') told.set({ recommendation: undefined })
  }
  const whole = async (): Promise<Json> =>
    await (await client.request('GET', `/chats/t/interactions/${run}`)).json()
  const read = async (): Promise<Seen> => {
    const last = (await until(stream.frames, take, ['approval_required', 'interaction_complete']))!
    if (last.event === 'interaction_complete') return told.now(ends[last.data.status]!)
    approval = last.data.approval_id
    // It may still be on the way to its pause.
    await expect.poll(async () => (await whole()).status).not.toBe('RUNNING')
    return (await whole()).status === 'WAITING_APPROVAL' ? told.now('waiting') : await read()
  }
  return {
    async start(account) {
      const body = { user_message: `Analyse ${account}`, agent: agentId }
      stream = await client.open('POST', '/chats/t/interactions', body)
      run = stream.response.headers.get('x-interaction-id')!
      return await read()
    },
    async decide(approved, reason) {
      const said = { approval_id: approval, approved, ...(reason && { reason }) }
      expect((await client.approve('t', run, said)).status).toBe(200)
      return await read()
    },
    follow: read,
    async join() {
      const { interactions } = await client.chat('t')
      run = interactions[0].id
      stream = await client.join('t', run)
      const seen = await read()
      const { end, failure, lines, agents, recommendation } = seen
      const open = { end, failure, lines, agents, recommendation, ...fromOutput(null) }
      const same = end === 'waiting' ? open : seen
      expect(interactionOf(await whole()), 'the interaction says the same').toEqual(same)
      return seen
    },
  }
}

const ends: Record<string, Seen['end']> = {
  ...{ COMPLETED: 'completed', FAILED: 'failed', WAITING_APPROVAL: 'waiting' },
}

const putUp = ({ tool_input }: Json) => JSON.parse(tool_input).recommendation.action_type

function interactionOf({ status, agents, agent_events, output, error, approvals }: Json): Seen {
  const standing = Object.entries<Json>(agents).map(([name, one]) => [name, one.status])
  const said = agent_events.filter(({ type }: Json) => type === 'ANSWER')
  return {
    end: ends[status]!,
    agents: Object.fromEntries(standing),
    recommendation: approvals ? putUp(approvals[0]) : undefined,
    failure: error?.message,
    lines: said.map(({ path, content }: Json) => `${path ?? agentId}: ${content}`),
    ...fromOutput(output),
  }
}

/** AG-UI, by either of its clients. */
const aguiDriver =
  (open: (url: string) => Promise<Client>) =>
  async (url: string): Promise<Driver> => {
    const client = await open(url)
    const { agent } = client
    const seen = (): Seen => {
      const [pending] = agent.pendingInterrupts as Json[]
      const shared = fromState(agent.state)
      const last = client.streams.at(-1)?.events.at(-1) as Json
      const status = (agent.state as Json).status === 'error' ? 'failed' : 'completed'
      return {
        ...shared,
        end: pending ? 'waiting' : status,
        recommendation: pending?.metadata.input.recommendation.action_type,
        failure: last?.type === 'RUN_ERROR' ? last.message : undefined,
        lines: client.shown().filter((line) => /^assistant: (?!\w+\()/.test(line)),
      }
    }
    const answer = async (approved: boolean, reason?: string) => {
      const payload = { approved, ...(reason && { reason }) }
      const resume = agent.pendingInterrupts.map(({ id: interruptId }) => {
        return { interruptId, status: 'resolved' as const, payload }
      })
      await client.run({ resume })
      return seen()
    }
    const failed = () => {} // one client throws what it is told, the other does not
    return {
      async start(account) {
        await client.say(`Analyse ${account}`).catch(failed)
        const steps = client.streams.at(-1)!.events.filter(({ type }) => type === 'STEP_STARTED')
        expect(steps.map((one) => (one as Json).stepName)).toEqual(Object.keys(seen().agents))
        return seen()
      },
      decide: answer,
      // These do not listen while they hold a question: a late answer is refused, and the page loads anew.
      async follow() {
        await answer(true).catch(failed)
        expect(client.errors).toEqual(['interrupt_expired'])
        return await (await aguiDriver(open)(url)).join()
      },
      async join() {
        await client.connect().catch(failed)
        return seen()
      },
    }
  }

/** GraphQL, by CopilotKit's last client of it. */
async function graphqlDriver(url: string): Promise<Driver> {
  const page = openPage(url, { agent: agentId })
  const seen = (status: Json): Seen => {
    const state = page.states[agentId] as Json
    const over = state.status === 'error' ? 'failed' : 'completed'
    return {
      ...fromState(state),
      end: page.interrupt ? 'waiting' : over,
      recommendation: page.interrupt?.value.input.recommendation.action_type,
      failure: status?.code === 'Failed' ? status.details.description : undefined,
      lines: page.shown().filter((line) => line.startsWith('assistant: ')),
    }
  }
  const follow = async () => {
    page.interrupt = undefined
    await page.load()
    return seen((await page.complete()).status)
  }
  return {
    async start(account) {
      const heard = await page.say(`Analyse ${account}`)
      const nodes = heard.seen.flatMap(({ messages }) => messages.map((one: Json) => one.nodeName))
      const now = seen(heard.status)
      expect([...new Set(nodes)]).toEqual(expect.arrayContaining(Object.keys(now.agents)))
      return now
    },
    decide: async (approved, reason) =>
      seen((await page.resolve({ approved, ...(reason && { reason }) })).status),
    follow,
    join: follow,
  }
}

export const wires = [
  { wire: 'workflow', open: workflowDriver },
  { wire: 'chats', open: chatsDriver },
  { wire: 'AG-UI (HttpAgent)', open: aguiDriver(async (url) => httpClient(url, 't', { agentId })) },
  { wire: 'AG-UI (CopilotKitCore)', open: aguiDriver((url) => coreClient(url, 't', { agentId })) },
  { wire: 'GraphQL', open: graphqlDriver },
] as const satisfies { wire: string; open: (url: string) => Promise<Driver> }[]
