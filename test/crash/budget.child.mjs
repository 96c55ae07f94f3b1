// One life of a small server: it ends what the last one left, begins another chat, and dies of that. Runs
// that ask are given a little more budget. The model that it calls counts in another process.
import { localBus } from '../../dist/bus/local/bus.js'
import { budgetAskOf } from '../../dist/core/budget-set.js'
import { createRuntime } from '../../dist/core/runtime.js'
import { ended } from '../../dist/core/state.js'
import { systemClock } from '../../dist/lib/clock.js'
import { crashAt } from '../../dist/lib/crash.js'
import { localQueue } from '../../dist/queue/local/queue.js'
import { fileStore } from '../../dist/stores/file/store.js'

const [directory, counter, crash, agent, left, chat] = process.argv.slice(2)
const log = { info() {}, warn() {}, error() {} }

const textOf = ({ parts }) => parts.map((part) => part.text ?? '').join('')

const model = {
  name: 'counted',
  async *stream({ messages }, signal) {
    await fetch(counter, { method: 'POST', body: textOf(messages.at(-1)), signal })
    yield { type: 'text', text: 'an answer' }
    yield { type: 'usage', usage: { inputTokens: 1, outputTokens: 2 } }
  },
}

/** What the user said, and which of its questions this is: the same in every leg. */
const question = (ctx, n) => {
  const said = textOf(ctx.messages().find(({ role }) => role === 'user'))
  return [{ id: `q${n}`, role: 'user', parts: [{ type: 'text', text: `${said} ${n}` }] }]
}
const six = [0, 1, 2, 3, 4, 5]

const agents = [
  {
    name: 'steps',
    // biome-ignore lint/correctness/useYield: all it does goes through ctx
    async *run(ctx) {
      for (const n of six) await ctx.model({ path: 'steps', messages: question(ctx, n) })
    },
  },
  {
    name: 'branches',
    async *run(ctx) {
      const ask = (n) => ctx.model({ path: `branch ${n}`, messages: question(ctx, n) })
      await Promise.all(six.map(ask))
    },
  },
  {
    name: 'nameless',
    async *run(ctx) {
      await Promise.all(six.map((n) => ctx.model({ messages: question(ctx, n) })))
    },
  },
]

const point = crashAt(crash)
let armed = false
const killAt = (name) => {
  if (armed) point(name)
}
const store = await fileStore({ directory, clock: systemClock, crash: killAt })
const runtime = createRuntime({
  ...{ store, bus: localBus(), queue: localQueue(systemClock), log, crash: killAt },
  agents: agents.map((one) => ({ agent: one, model })),
  governor: { isHitlEnabled: true, actionLimit: 2 },
  plainIds: true,
})
const served = runtime.serve()
const caller = { tenant: 'default', user: 'local', roles: ['user'], wire: 'test' }

/** Gives a run that asks more calls, one way or the other, until it ends. */
async function attend(chat, n) {
  const thread = await runtime.find(caller, chat)
  const [run] = thread?.state.runs.values() ?? []
  if (!run) return
  for (let grants = n; !ended(run); grants++) {
    const open = budgetAskOf(thread.state)?.ask
    const newLimit = 1 + (grants % 3)
    if (open && grants % 2 === 0) {
      const named = { input: '', value: '' }
      await runtime.setGovernor(caller, chat, { actionLimit: newLimit }, named)
    } else if (open) {
      const decision = { approved: true, newLimit }
      const one = { askId: open.askId, decision, named: { input: '', value: '' } }
      await runtime.answer(caller, chat, { decisions: [one] })
    }
    await new Promise((resolve) => {
      const unlisten = thread.listen(() => {
        unlisten()
        setImmediate(resolve)
      })
      if (ended(run) || budgetAskOf(thread.state)) resolve()
    })
  }
}

await attend(left, 0)
if (chat !== undefined) {
  armed = true
  const message = { id: `m-${chat}`, role: 'user', parts: [{ type: 'text', text: chat }] }
  await runtime.start(caller, chat, { messages: [message], agent })
  await attend(chat, 1)
}
await runtime.stop(0)
await served
await store.close()
