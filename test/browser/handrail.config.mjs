// The server under test: a model that does as it is told and waits where it is told, and a tool that
// leaves a mark outside of the server.
import { appendFileSync, existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { defineConfig, defineTool, RuntimeError, toolLoop } from '../../dist/index.js'

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
    if (word === 'fail') throw new RuntimeError('model_request', 'The library is closed.')
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

/** An agent with a state: a shelf of books, which a page may change too. */
const librarian = {
  name: 'librarian',
  description: 'Keeps the shelf.',
  async *run({ messages, state, newId, signal }) {
    const said = textOf(messages().findLast(({ role }) => role === 'user'))
    const [word, book, until] = said.split(' ')
    let { books = [] } = state() ?? {}
    yield { type: 'step', name: 'shelf', done: false }
    if (word === 'buy') {
      yield { type: 'state', value: { books, looking: `Looking for ${book}` } }
      await gate(until, signal)
      books = [...books, book]
      yield { type: 'state', value: { books } }
    }
    yield { type: 'step', name: 'shelf', done: true }
    const parts = [{ type: 'text', text: `On the shelf: ${books.join(', ')}.` }]
    yield { type: 'message', message: { id: newId('msg'), role: 'assistant', parts } }
  },
}

export default defineConfig({
  agents: [toolLoop({ name: 'assistant' }), librarian],
  model,
  tools: [signBook],
  builtIns: false,
})
