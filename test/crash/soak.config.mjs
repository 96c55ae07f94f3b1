// The server of the soak: whatever the model says follows from the thread alone, in small pieces.
import { appendFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { defineConfig, defineTool, RuntimeError, toolLoop } from '../../dist/index.js'

const { SOAK_OUTSIDE = '/dev/null', SOAK_PACE = '3' } = process.env
const pace = Number(SOAK_PACE)

const schema = z.strictObject({ what: z.string() })

/** Done once or not at all: nobody could take it back. */
const once = (name, about) =>
  defineTool({
    ...{ name, description: 'Leaves a mark outside.', schema, ...about },
    timeout: 2_000, // after a crash nobody is asked before it is over
    async run({ what }, { effectId }) {
      appendFileSync(SOAK_OUTSIDE, `${JSON.stringify({ tool: name, what, effectId })}\n`)
      await sleep(pace * 8)
      return `${name} ${what}: done`
    },
  })

const look = defineTool({
  ...{ name: 'look', description: 'Looks.', schema, access: 'read', idempotent: true },
  async run({ what }, { write }) {
    write('looking ')
    await sleep(pace * 2)
    return `saw ${what}`
  },
})

/** The calls of each step that the user's first word leads to; `paint` is the client's. */
const steps = {
  look: [['look']],
  count: [['count']],
  sign: [['sign']],
  both: [['sign', 'sign']],
  paint: [['paint']],
  mixed: [['look', 'paint', 'sign']],
  chain: [['look', 'look'], ['count'], ['sign'], ['paint']],
}

const model = {
  name: 'scripted',
  async *stream({ messages }, signal) {
    const at = messages.findLastIndex(({ role }) => role === 'user')
    const [word, tag, size] = textOf(messages[at]).split(' ')
    const since = messages.slice(at + 1)
    const taken = since.filter(({ role }) => role === 'assistant').length
    const calls = (steps[word] ?? [])[taken]
    refuseInvalid(messages)
    for (const event of calls ? acts(word, tag, taken, calls) : speaks(word, tag, size, since)) {
      await sleep(pace, undefined, { signal })
      yield event
    }
  },
}

function* acts(word, tag, step, calls) {
  if (word === 'chain') yield { type: 'reasoning', text: `Step ${step} ` }
  if (word === 'chain') yield { type: 'reasoning', text: `of ${tag}.` }
  for (const text of ['I will ', `${calls.join(', ')} `, `for ${tag}.`])
    yield { type: 'text', text }
  for (const [i, name] of calls.entries()) {
    const callId = `${tag}.${step}.${i}`
    const input = JSON.stringify({ what: callId })
    for (const text of [input.slice(0, 6), input.slice(6)])
      yield { type: 'input', callId, name, text }
    yield { type: 'call', callId, name, input }
  }
}

function* speaks(word, tag, size, since) {
  const pieces = Number(size)
  if (word === 'think') {
    for (let i = 0; i < pieces; i++) yield { type: 'reasoning', text: `${tag} thought ${i} ` }
  }
  for (let i = 0; i < pieces; i++) yield { type: 'text', text: `${tag} word ${i} ` }
  // What the model was told is in what it says: a result that is lost or doubled shows.
  for (const message of since)
    if (message.role === 'tool') yield { type: 'text', text: `[${textOf(message)}] ` }
  yield { type: 'text', text: 'end.' }
  yield { type: 'usage', usage: { inputTokens: 1, outputTokens: pieces } }
}

const textOf = ({ parts }) => parts.map((part) => part.text ?? '').join('')

/** What a provider would refuse: a call without its result, or a result without its call (I8). */
function refuseInvalid(messages) {
  let open = []
  for (const { role, callId, parts } of messages) {
    const fits = role === 'tool' ? open.shift() === callId : open.length === 0
    if (!fits) throw new RuntimeError('model_request', `invalid history at ${role} ${callId}`)
    if (role === 'assistant') open = parts.filter(({ type }) => type === 'call').map(idOf)
  }
  if (open.length > 0) throw new RuntimeError('model_request', `no result of ${open}`)
}

const idOf = ({ callId }) => callId

export default defineConfig({
  agents: [toolLoop({ name: 'assistant' })],
  model,
  tools: [look, once('sign', { access: 'write' }), once('count', { access: 'write' })],
  builtIns: false,
  policy: [
    { tool: 'sign', decision: 'ask', timeout: 600_000 },
    { tool: '*', decision: 'allow' },
  ],
})
