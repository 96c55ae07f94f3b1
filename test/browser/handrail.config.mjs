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

const countGuests = defineTool({
  name: 'count_guests',
  description: 'Counts the guests in the book.',
  schema: z.strictObject({}),
  access: 'read',
  run: async () => 'all of them',
})

/** Stands until the test opens the gate of this name. */
async function gate(name, signal) {
  while (!existsSync(`${BROWSER_STAGE}/${name}`)) await sleep(10, undefined, { signal })
}

const call = (name, input, n = 0) => ({ name, input, callId: `call_${name}_${n}` })

/** What the user's first word makes the model call in its first step. */
const calls = {
  sign: (...guests) => guests.map((guest, n) => call('sign_book', { guest }, n)),
  count: () => [call('count_guests', {})],
  paint: (color) => [call('change_background', { color })],
  seat: (row) => [call('choose_seat', { row: Number(row) })],
  dim: () => [call('dim_lights', {})],
  both: (color, guest) => [...calls.paint(color), ...calls.sign(guest)],
  announce: (color) => calls.paint(color),
  hush: (word, ...rest) => calls[word](...rest),
}

const model = {
  name: 'scripted',
  async *stream({ messages, system, parameters }, signal) {
    if (parameters?.toolChoice?.name === 'extract') return yield suggestion
    const at = messages.findLastIndex(({ role }) => role === 'user')
    const [word, ...rest] = textOf(messages[at]).split(' ')
    const results = messages.slice(at + 1).filter(({ role }) => role === 'tool')
    if (results.length === 0 && word in calls) {
      if (word === 'announce') yield* spoken('Here is some color.')
      for (const { callId, name, input } of calls[word](...rest)) {
        const id = `${callId}_${at}` // unique in the thread, the same in every attempt
        yield { type: 'call', callId: id, name, input: JSON.stringify(input) }
      }
      return
    }
    switch (word) {
      case 'hush':
        return
      case 'fail':
        throw new RuntimeError('model_request', 'The library is closed.')
      case 'tell':
        yield* spoken('Once upon a time')
        await gate(rest[0], signal)
        return yield* spoken(' there was a handrail.')
      case 'recall':
        return yield* spoken(`I remember: ${saidBy('tool', messages)}.`)
      case 'flower':
        return yield* spoken(`I see ${/The flower on the page: "?([^"\n]+)/.exec(system)?.[1]}.`)
      case 'think':
        yield { type: 'reasoning', text: 'It is a short question.' }
    }
    yield* spoken(`I heard: ${saidBy('tool', results) || [word, ...rest].join(' ')}.`)
  },
}

/** What a page gets that asks for something to suggest. */
const suggestion = {
  type: 'call',
  callId: 'suggestion',
  name: 'extract',
  input: JSON.stringify({ suggestions: [{ title: 'Greet', message: 'hello' }] }),
}

function* spoken(text) {
  for (const piece of text.match(/\S+\s*|\s+/g)) yield { type: 'text', text: piece }
}

/** Texts without the line that names the arguments of an edited call. */
const saidBy = (who, messages) =>
  messages
    .filter(({ role }) => role === who)
    .map((message) => textOf(message).split('\n').at(-1))
    .join(', ')

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
  tools: [signBook, countGuests],
  builtIns: false,
})
