// The server under test: a model that does as it is told and waits where it is told, and a tool that
// leaves a mark outside of the server.
import { appendFileSync, existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { defineConfig, defineTool, toolLoop } from '../../dist/index.js'

const { BROWSER_STAGE = '' } = process.env

const signBook = defineTool({
  name: 'sign_book',
  description: 'Signs the guest book.',
  schema: z.strictObject({ guest: z.string().min(1) }),
  access: 'write',
  describe: ({ guest }) => `Sign the guest book for ${guest}`,
  async run({ guest }) {
    appendFileSync(`${BROWSER_STAGE}/guests`, `${guest}\n`)
    return `${guest} is in the book`
  },
})

/** Stands until the test opens the gate of this name. */
async function gate(name, signal) {
  while (!existsSync(`${BROWSER_STAGE}/${name}`)) await sleep(10, undefined, { signal })
}

const call = (name, input, n = 0) => ({ name, input, callId: `call_${name}_${n}` })

/** What the user's first word makes the model do: calls in its first step, then words. */
const scenes = {
  sign: (...guests) => guests.map((guest, n) => call('sign_book', { guest }, n)),
  paint: (color) => [call('change_background', { color })],
  seat: (row) => [call('choose_seat', { row: Number(row) })],
}

const model = {
  name: 'scripted',
  async *stream({ messages }, signal) {
    const at = messages.findLastIndex(({ role }) => role === 'user')
    const [word, ...rest] = textOf(messages[at]).split(' ')
    const results = messages.slice(at + 1).filter(({ role }) => role === 'tool')
    const calls = results.length > 0 ? [] : (scenes[word]?.(...rest) ?? [])
    for (const { callId, name, input } of calls) {
      const id = `${callId}_${at}` // unique in the thread, the same in every attempt
      yield { type: 'call', callId: id, name, input: JSON.stringify(input) }
    }
    if (calls.length > 0) return
    if (word === 'think') yield { type: 'reasoning', text: 'It is a short question.' }
    if (word === 'tell') {
      for (const piece of ['Once ', 'upon ', 'a time']) yield { type: 'text', text: piece }
      await gate(rest[0], signal)
      for (const piece of [' there ', 'was ', 'a handrail.']) yield { type: 'text', text: piece }
      return
    }
    const said = results.length > 0 ? results.map(textOf).join(', ') : [word, ...rest].join(' ')
    for (const piece of `I heard: ${said}.`.match(/\S+\s*/g)) yield { type: 'text', text: piece }
  },
}

const textOf = ({ parts }) => parts.map((part) => part.text ?? '').join('')

export default defineConfig({
  agents: [toolLoop({ name: 'assistant' })],
  model,
  tools: [signBook],
  builtIns: false,
})
