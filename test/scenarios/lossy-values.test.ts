import { expect, test } from 'vitest'
import { workflow } from '../../src/agents/workflow/agent.ts'
import type { Agent } from '../../src/core/agent.ts'
import { wrapped } from '../../src/index.ts'
import { serve } from '../support/serve.ts'
import { find } from '../support/tools.ts'

class Money {
  readonly #amount = 5
  get amount() {
    return this.#amount
  }
}

async function start(agent: Agent) {
  const server = await serve({ agents: [agent], builtIns: false })
  const body = { user_message: 'go', agent: agent.name }
  const stream = await server.open('POST', '/chats/c/interactions', body)
  return { server, stream }
}

/** The frames of a run to its end, and its entries in the journal. */
async function runOf(agent: Agent) {
  const { server, stream } = await start(agent)
  const frames = await stream.rest()
  return { frames, kinds: (await server.journal('c')).map(({ kind }) => kind) }
}

/** Milliseconds after which a question that is asked by mistake ends the run. */
const timeout = 1_000

const asking = (input: unknown): Agent => ({
  name: 'asking',
  async *run(ctx) {
    await ctx.ask({ kind: 'approval', key: 'pay', title: 'Pay?', input, timeout })
    yield { type: 'event', name: 'paid', value: {} }
  },
})

test.each<[string, unknown, string]>([
  ['a Set', { to: new Set(['bob']) }, 'input.to is a Set'],
  ['a Map', new Map([['amount', 5]]), 'input is a Map'],
  ['a class instance', { money: new Money() }, 'input.money is an instance of Money'],
  ['a BigInt', { amounts: [5n] }, 'input.amounts[0] is a BigInt'],
])(
  'an agent cannot ask for approval of %s, because the card would not show it',
  async (_, input, loss) => {
    const { frames, kinds } = await runOf(asking(input))
    expect(find(frames, 'error')).toMatchObject({ code: 'agent_failed' })
    expect(find(frames, 'error').error).toContain(loss)
    expect(kinds).not.toContain('ask.raised')
  },
)

test('a wrapped agent cannot ask for approval of a Map', async () => {
  const object = {
    async *execute_with_events() {
      yield { event: 'approval_required', data: { recommendation: new Map([['amount', 5]]) } }
    },
  }
  const agent = wrapped(object, { name: 'wrapped', approvalTimeout: timeout })
  const { frames, kinds } = await runOf(agent)
  expect(kinds).not.toContain('ask.raised')
  expect(find(frames, 'error').error).toContain('input is a Map')
})

test('a step of a workflow cannot return a Map, because its approval would not show it', async () => {
  const agent: Agent = { name: 'worker', async *run() {} }
  const output = () => ({ how: new Map([['amount', 5]]) })
  const steps = [
    { agent, outputKey: 'plan', output },
    { approve: 'plan', timeout },
  ]
  const { frames, kinds } = await runOf(workflow({ name: 'flow', steps }))
  expect(kinds).not.toContain('ask.raised')
  expect(find(frames, 'error').error).toContain('how is a Map')
})

test('the card of an approval shows values with toJSON as their JSON', async () => {
  const { stream } = await start(asking({ at: new Date(0), note: undefined }))
  const asked = await stream.until('approval_required')
  stream.leave()
  const { card, tool_input } = find(asked, 'approval_required')
  expect(card.arguments).toEqual(['at: "1970-01-01T00:00:00.000Z"'])
  expect(JSON.parse(tool_input)).toEqual({ at: '1970-01-01T00:00:00.000Z' })
})
