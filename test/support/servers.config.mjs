// One of several servers under test: what it does is written where the test can see it, with its name.
import { appendFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { defineConfig, defineTool, RuntimeError, toolLoop } from '../../dist/index.js'

const { TEST_SERVER = '', TEST_MARKS = '/dev/null' } = process.env

/** One line per happening, written before anything else can happen. */
function mark(what, about) {
  appendFileSync(TEST_MARKS, `${JSON.stringify({ server: TEST_SERVER, what, about })}\n`)
}

const pay = defineTool({
  name: 'pay',
  description: 'Pays.',
  schema: z.strictObject({ to: z.string() }),
  access: 'write',
  describe: ({ to }) => `Pay ${to}`,
  async run({ to }) {
    mark('pay', to)
    await sleep(20)
    return `paid ${to}`
  },
})

const textOf = ({ parts }) => parts.map((part) => part.text ?? '').join('')

async function* tell(count, signal) {
  for (let n = 1; n <= count; n++) {
    await sleep(4, undefined, { signal })
    yield { type: 'text', text: `${n} ` }
  }
}

/** `pay ann`: a call that must be approved, then a slow answer. `tell 50`: fifty pieces. */
const model = {
  name: 'scripted',
  async *stream({ messages, tools }, signal) {
    if (tools.some(({ name }) => name === 'copilotkitSuggest')) {
      const suggestions = [{ title: 'Sea', message: 'Tell me of the sea' }]
      const input = JSON.stringify({ suggestions })
      yield { type: 'call', callId: 'chips', name: 'copilotkitSuggest', input }
      return
    }
    const user = textOf(messages.findLast(({ role }) => role === 'user'))
    mark('model', user)
    const [word, what] = user.split(' ')
    if (word === 'pay' && messages.at(-1).role === 'user') {
      yield { type: 'text', text: 'I pay.' }
      const input = JSON.stringify({ to: what })
      yield { type: 'call', callId: `call-${what}`, name: 'pay', input }
    } else if (word === 'pay') yield* tell(60, signal)
    else if (word === 'tell') {
      try {
        yield* tell(Number(what), signal)
      } finally {
        mark('told', user)
      }
    } else yield { type: 'text', text: `re: ${user}` }
  },
}

/** Asks first, unless it is told `now` or `tell`, and then needs what only a request can have brought. */
const keeper = {
  name: 'keeper',
  async *run(ctx) {
    const said = textOf(ctx.messages().findLast(({ role }) => role === 'user'))
    if (said.startsWith('tell')) await ctx.model({ messages: ctx.messages() })
    else if (said !== 'now')
      await ctx.ask({ kind: 'input', title: 'Go on?', key: 'go', timeout: 600_000 })
    const token = ctx.options.headers?.['x-vendor-token']
    mark('secret', `${said} ${token}`)
    if (token === undefined) throw new RuntimeError('authentication', 'Bring x-vendor-token again.')
    const parts = [{ type: 'text', text: 'It fits.' }]
    yield { type: 'message', message: { id: ctx.newId('msg'), role: 'assistant', parts } }
  },
}

export default defineConfig({
  agents: [toolLoop({ name: 'assistant' }), keeper],
  model,
  tools: [pay],
  builtIns: false,
  retry: { first: 5, most: 20 },
})
