// The server under test: tools that leave a mark outside of it, and a model that does as it is told.
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { aguiAgent, defineConfig, defineTool, RuntimeError, toolLoop } from '../../dist/index.js'

const { CRASH_OUTSIDE = '/dev/null', CRASH_ASK_TIMEOUT = '600000', CRASH_LIFE = '' } = process.env
/** Where the provider and the remote agent are: a process that records what it gets. */
const { CRASH_RECORD, CRASH_ONCE_TIMEOUT } = process.env

/** One line per execution, written before anything else can happen. */
function mark(execution) {
  const record = { ...execution, by: CRASH_LIFE, at: Date.now() }
  appendFileSync(CRASH_OUTSIDE, `${JSON.stringify(record)}\n`)
}

const counter = (name, about) =>
  defineTool({
    name,
    description: 'Counts.',
    schema: z.object({ n: z.number() }),
    timeout: 300,
    async run({ n }, { effectId, write, signal }) {
      mark({ effectId, n })
      write(`${name} ${n}`)
      await sleep(about.takes ?? 3, undefined, about.listens && { signal })
      if (about.fails) throw new Error(`${name} always fails`)
      return `${name} ${n}: done`
    },
    ...about.tool,
  })

const tools = [
  counter('count', { tool: { access: 'write' } }),
  counter('count_free', {}),
  counter('count_safe', { tool: { idempotent: true } }),
  counter('count_fails', { fails: true }),
  counter('count_long', { takes: 800, listens: true, tool: { timeout: 1_000 } }),
  counter('count_known', { tool: { check: async () => known() } }),
  counter('count_deaf', { takes: 150 }),
]

/** What the world says about it by now, if it says anything. */
function known() {
  const path = `${CRASH_OUTSIDE}.known`
  return existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : undefined
}

/** What the user's first word makes the model do: the calls of each step, then a text. */
const scripts = {
  approve: [['count']],
  free: [['count_free']],
  safe: [['count_safe']],
  three: [['count_free', 'count_safe', 'count']],
  steps: [['count_free'], ['count_safe'], ['count']],
  walk: Array.from({ length: 8 }, (_, i) => [i % 2 === 0 ? 'count_safe' : 'count_free']),
  broken: [['count_fails']],
  long: [['count_long']],
  deaf: [['count_deaf']],
  known: [['count_known']],
}

/** Messages whose first attempt in this process was cut in the middle. */
const cut = new Set()

const model = {
  name: 'scripted',
  async *stream({ messages, tools }, signal) {
    const at = messages.findLastIndex(({ role }) => role === 'user')
    const user = messages[at]
    await sentToProvider(user)
    refuseInvalid(messages)
    const [word, size] = textOf(user).split(' ')
    const pieces = Number.parseInt(size, 10) || 12
    const steps = tools.length > 0 ? (scripts[word] ?? []) : []
    const taken = messages.slice(at + 1).filter(({ role }) => role === 'assistant').length
    if (word === 'think') yield { type: 'reasoning', text: 'Let me see. ' }
    if (word === 'fail') throw new RuntimeError('model_request', 'told to fail')
    if (taken < steps.length) {
      yield { type: 'text', text: 'I will ' }
      yield { type: 'text', text: 'count.' }
      for (const [i, name] of steps[taken].entries()) {
        const input = JSON.stringify({ n: numberOf(user) * 100 + taken * 10 + i })
        yield { type: 'call', callId: `call_${taken}_${i}`, name, input }
      }
      return
    }
    const broken = word === 'flaky' && !cut.has(user.id)
    for (let i = 0; i < pieces; i++) {
      if (broken && i === 5) {
        cut.add(user.id)
        throw new RuntimeError('stream_cut', 'told to break')
      }
      if (word === 'slow') await sleep(8, undefined, { signal })
      yield { type: 'text', text: `w${i} ` }
    }
    yield { type: 'text', text: 'end.' }
    yield { type: 'usage', usage: { inputTokens: 1, outputTokens: pieces } }
  },
}

/** The provider gets the call, and records it, before it says anything. */
async function sentToProvider(user) {
  if (CRASH_RECORD === undefined) return
  const body = JSON.stringify({ n: numberOf(user), by: CRASH_LIFE })
  const response = await fetch(`${CRASH_RECORD}/model`, { method: 'POST', body })
  if (!response.ok) throw new RuntimeError('network', 'the record is gone')
}

/** `approve #17`: what is counted for it has a number of its own, so that a person can tell. */
const numberOf = (user) => Number(/#(\d+)/.exec(textOf(user))?.[1] ?? 0)

const textOf = ({ parts }) => parts.map((part) => part.text ?? '').join('')

/** What a provider would refuse, this one refuses too (I8). */
function refuseInvalid(messages) {
  let open = []
  for (const message of messages) {
    if (message.role === 'tool') {
      if (open.shift() !== message.callId) throw refused('a result without its call')
      continue
    }
    if (open.length > 0) throw refused('a call without its result')
    open = message.parts.filter(({ type }) => type === 'call').map(({ callId }) => callId)
  }
  if (open.length > 0) throw refused('a call without its result')
  if (messages.at(-1)?.role === 'assistant') throw refused('nothing to answer')
}

const refused = (why) => new RuntimeError('model_request', `invalid history: ${why}`)

/** Uses what the built-in agent does not: state, events, and a question of its own. */
const notes = {
  name: 'notes',
  async *run(ctx) {
    if (ctx.messages().at(-1)?.role === 'assistant') return
    yield { type: 'state', value: { runId: ctx.runId } }
    yield { type: 'event', name: 'noted', value: { legId: ctx.legId } }
    await ctx.ask({ kind: 'input', title: 'Which colour?', key: 'colour', timeout: 600_000 })
    await ctx.model({ messages: ctx.messages() })
  },
}

const url = `${CRASH_RECORD ?? 'http://127.0.0.1:1'}/run`
const far = { name: 'far', url, idempotent: true, timeouts: { total: 60_000 } }
/** Its legs must not be repeated: after a crash a person is asked, once their time has passed. */
const once = { name: 'once', url, timeouts: { total: Number(CRASH_ONCE_TIMEOUT ?? 2_000) } }

export default defineConfig({
  agents: [toolLoop({ name: 'assistant' }), notes, aguiAgent(far), aguiAgent(once)],
  model,
  tools,
  builtIns: false,
  policy: [
    { tool: 'count', decision: 'ask', timeout: Number(CRASH_ASK_TIMEOUT) },
    { tool: 'count_long', decision: 'ask' },
    { tool: 'count_*', decision: 'allow' },
  ],
  retry: { first: 5, most: 20 },
  // The model fails on purpose, often several times in a row. An open circuit would fail the runs of other messages.
  providers: { failures: 1_000 },
})
