import { cityIn, codeIn, nameIn, patterns, unquote } from './ask.ts'
import { brief, call, type Line, say, think } from './line.ts'
import { recommend } from './recommend.ts'

/** Something a person may say, and what the demo model does about it. */
export interface Scene {
  when: RegExp
  play(match: RegExpExecArray): Line[]
  /** After tool results; without it the results are put into words. */
  after?(match: RegExpExecArray): Line[]
}

const prompts = [
  "What's the weather in Barcelona?",
  'Write a file named notes.txt with the text hello',
  'Read notes.txt',
  'List files',
  'Run this code: 1 + 1',
  'Do three things at once',
  'Think hard',
  'Be slow',
  'Count to 10',
  'Echo hello',
  'Use the tool echo with {"text": "hello"}',
  'Loop',
  'Fail',
]
const list = prompts.map((prompt) => `- ${prompt}`).join('\n')
const whoAmI = 'I am the demo model, a script with no intelligence in it.'

/** What the chips of a page may say. */
export const suggestions = prompts.slice(0, 3).map((message) => ({
  title: message.split(' ').slice(0, 4).join(' '),
  message,
}))

/** The first that matches plays; the order is from the particular to the general. */
export const scenes: readonly Scene[] = [
  { when: patterns.recommend, play: ({ input }) => recommend(input) },
  { when: patterns.greeting, play: () => [say(`Hello! ${whoAmI} Try one of these:\n\n${list}`)] },
  {
    when: patterns.fail,
    play: () => [{ type: 'fail', message: 'The demo model was told to fail.' }],
  },
  { when: patterns.loop, play: loop, after: loop },
  { when: patterns.useTool, play: ([, name = '', input]) => useTool(name, input) },
  { when: patterns.slow, play: () => [{ type: 'say', pieces: slowly, slow: true }] },
  { when: patterns.think, play: thinkHard },
  { when: patterns.threeThings, play: threeThings },
  { when: patterns.echo, play: ([, text]) => [call('echo', { text: unquote(text) })] },
  { when: patterns.run, play: ([, code]) => [say('I will run it in the sandbox. '), runIt(code)] },
  { when: patterns.writeNamed, play: ([, name, text]) => write(name, text) },
  { when: patterns.writeTo, play: ([, text, name]) => write(name, text) },
  { when: patterns.weather, play: ([, city]) => weather(cityIn(city)) },
  {
    when: patterns.list,
    play: ([, path]) => [call('list_files', path ? { path: nameIn(path) } : {})],
  },
  { when: patterns.count, play: ([, number]) => count(Number(number)) },
  { when: patterns.read, play: ([, name]) => [call('read_file', { path: nameIn(name) })] },
  {
    when: /^.*$/s,
    play: ([heard]) => [
      say(
        `${whoAmI} I heard ${quote(heard)} and have no lines for it. Try one of these:\n\n${list}`,
      ),
    ],
  },
]

function quote(heard: string): string {
  return heard === '' ? 'nothing that I can read' : `"${brief(heard)}"`
}

function weather(city: string): Line[] {
  if (city === '') return [say('Which city? Ask me: What is the weather in Barcelona?')]
  return [
    think(`They ask about the weather in ${city}. There is a tool for that.`),
    say(`Let me look up the weather in ${city}. `),
    call('weather', { city }),
  ]
}

/** Any tool that is offered, those of the page too. */
function useTool(name: string, input = '{}'): Line[] {
  try {
    return [call(name, JSON.parse(input) as Record<string, unknown>)]
  } catch {
    return [say(`That is not JSON. Say: use the tool ${name} with {"key": "value"}`)]
  }
}

function write(name?: string, text?: string): Line[] {
  const path = nameIn(name)
  return [say(`I will write ${path}. `), call('write_file', { path, content: unquote(text) })]
}

const runIt = (code?: string) => call('run_code', { code: codeIn(code) })

function threeThings(): Line[] {
  return [
    say('Three things at once: the weather, a file and some code. '),
    call('weather', { city: 'Barcelona' }),
    call('write_file', { path: 'three.txt', content: 'Written by the demo model.\n' }),
    call('run_code', { code: 'console.log("running");\n[1, 2, 3].map((n) => n * n)' }),
  ]
}

function thinkHard(): Line[] {
  const pieces = [
    'The question is short, ',
    'so the answer should be too. ',
    'What would a person want to see here? ',
    'That thinking arrives in pieces, ',
    'before the answer does, ',
    'and that it is kept apart from it. ',
    'Is there anything else? ',
    'A moment more, ',
    'to be sure. ',
    'Yes, that is all.',
  ]
  return [{ type: 'think', pieces, slow: true }, say('I thought hard, and the answer is 42.')]
}

function loop(): Line[] {
  return [call('echo', { text: 'again' })]
}

const most = 1_000

function count(to: number): Line[] {
  const last = Math.min(to, most)
  const pieces = Array.from({ length: last }, (_, n) => `${n + 1}${n + 1 < last ? ' ' : ''}`)
  const note = to > most ? [say(` I stop at ${most}.`)] : []
  return to === 0 ? [say('0')] : [{ type: 'say', pieces }, ...note]
}

/** Forty pieces, the same every time. */
const slowly = Array.from({ length: 40 }, (_, n) => {
  if (n === 0) return 'This is a slow answer in forty pieces.'
  return n === 39 ? ' And that was the last one.' : ` Piece ${n + 1} of 40.`
})
