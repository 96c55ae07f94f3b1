// The server under the page: the demo model, and some words more that wait for the test or look special.
import { existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import {
  AgentError,
  defineConfig,
  defineTool,
  demoModel,
  RuntimeError,
  toolLoop,
} from '../../dist/index.js'
import { systemClock } from '../../dist/lib/clock.js'
import { tools as asking, callsFor, policy } from './decisions.config.mjs'

const { BROWSER_STAGE = '' } = process.env

/** Stands until the test opens the gate of this name. */
async function gate(name, signal) {
  while (!existsSync(`${BROWSER_STAGE}/${name}`)) await sleep(10, undefined, { signal })
}

const printer = defineTool({
  name: 'slow_printer',
  description: 'Prints lines, and stands at a gate before the last.',
  schema: z.strictObject({ until: z.string() }),
  access: 'read',
  async run({ until }, { write, signal }) {
    write('first line\n')
    write('second line\n')
    await gate(until, signal)
    return 'first line\nsecond line\nthird line'
  },
})

const breaks = defineTool({
  name: 'broken_tool',
  description: 'Never works.',
  schema: z.strictObject({}),
  access: 'read',
  run: async () => {
    throw new Error('The belt has come off.')
  },
})

const markdown = `# A heading

Some **bold** words, a [link](https://example.com/page) and \`inline code\`.

| tool | state |
| --- | --- |
| read | allowed |
| write | asks |

\`\`\`js
const answer = 6 * 7 // as ever
console.log("answer", answer)
\`\`\`

![a picture elsewhere](https://example.com/picture.png)
`

const odd = `See [the docs][1], a note[^n], [a script](javascript:alert(1)) and [a place](../inbox).

- [x] washed
- [ ] dried

| tool | what a person would want to know of it | another | one more |
| --- | --- | --- | --- |
| read | everything that is to be said about reading | allowed | always |

שלום עולם

[1]: https://example.com/docs
[^n]: What the note says.
`

/** Requests that have failed once, and will not again. */
const failed = new Set()

const demo = demoModel({ clock: systemClock, delay: 2, slow: 60 })

const model = {
  ...demo,
  async *stream(request, signal) {
    const { messages } = request
    const at = messages.findLastIndex(({ role }) => role === 'user')
    const [word, ...rest] = textOf(messages[at]).split(' ')
    const results = messages.slice(at + 1).filter(({ role }) => role === 'tool')
    const call = (name, input, n = 0) => ({
      ...{ type: 'call', callId: `call_${name}_${messages.length}_${n}`, name },
      input: JSON.stringify(input),
    })
    if (word === 'tell') {
      yield { type: 'text', text: 'Once upon a time' }
      await gate(rest[0], signal)
      return yield { type: 'text', text: ' there was a handrail.' }
    }
    if (word === 'flaky') {
      if (!failed.has(rest[0])) {
        failed.add(rest[0])
        throw new RuntimeError('network', 'The line is down.', { retryAfter: 3 })
      }
      return yield { type: 'text', text: 'Now it works.' }
    }
    const wanted = callsFor(word, rest)
    if (wanted.length > 0 && results.length > 0)
      return yield { type: 'text', text: `Heard: ${results.map(textOf).join('; ')}.` }
    if (wanted.length > 0) yield { type: 'text', text: 'I think that this is right.' }
    for (const [n, [name, input]] of wanted.entries()) yield call(name, input, n)
    if (wanted.length > 0) return
    // As many calls of the model as it is told, one after the other.
    if (word === 'steps' && results.length < Number(rest[0]))
      return yield call('slow_printer', { until: 'always' }, results.length)
    if (word === 'steps') return yield { type: 'text', text: 'All steps are made.' }
    // Two tools, each at a gate of its own.
    if (word === 'walk' && results.length < 2)
      return yield call(
        'slow_printer',
        { until: `${rest[0]}-${results.length + 1}` },
        results.length,
      )
    if (word === 'walk') return yield { type: 'text', text: 'There.' }
    if (word === 'answer') return yield { type: 'text', text: `Answer ${rest.join(' ')}.` }
    if (word === 'odd') return yield { type: 'text', text: odd }
    if (word === 'show') return yield { type: 'text', text: markdown }
    if (word === 'print' && results.length === 0)
      return yield call('slow_printer', { until: rest[0] })
    if (word === 'break' && results.length === 0) return yield call('broken_tool', {})
    if (word === 'print' || word === 'break') return yield { type: 'text', text: 'That is that.' }
    yield* demo.stream(request, signal)
  },
}

const textOf = ({ parts }) => parts.map((part) => part.text ?? '').join('')

const clerk = {
  name: 'clerk',
  description: 'Wants to know the account first',
  // biome-ignore lint/correctness/useYield: it fails before it says anything
  async *run() {
    throw new AgentError('Name an account, like ACC-001.')
  },
}

/** Asks for approval of a plan, which is no call of a tool, and then ends without a word. Or it fails. */
const desk = {
  name: 'desk',
  description: 'Puts a plan up for approval',
  async *run(ctx) {
    const words = textOf(ctx.messages().findLast(({ role }) => role === 'user'))
    if (words === 'busy') throw new RuntimeError('rate_limit')
    if (words === 'crm')
      throw new RuntimeError('rate_limit', 'The CRM allows ten questions an hour.')
    const plan = { key: 'plan', title: 'Follow the plan', input: { to: 'ann' }, editable: true }
    if (words === 'plan') return void (await ctx.ask({ kind: 'approval', ...plan }))
    const parts = [{ type: 'text', text: 'Yes.' }]
    yield { type: 'message', message: { id: ctx.newId('msg'), role: 'assistant', parts } }
  },
}

export default defineConfig({
  agents: [
    toolLoop({
      name: 'assistant',
      description: 'Answers, and uses tools',
      suggestions: ['What can you do?', 'answer in a word'],
    }),
    toolLoop({
      name: 'poet',
      description: 'Answers in verse, or would',
      suggestions: ['answer in verse'],
    }),
    clerk,
    desk,
  ],
  model,
  tools: [printer, breaks, ...asking],
  policy,
  cheaper: { ...model, name: 'small' },
})
