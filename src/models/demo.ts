import { RuntimeError } from '../core/errors.ts'
import { type Message, type Part, textOf } from '../core/messages.ts'
import type { Model, ModelEvent, ModelRequest } from '../core/model.ts'
import { sha256 } from '../lib/canonical.ts'
import type { Clock } from '../lib/clock.ts'
import { brief, call, type Line, piecesOf, say } from './demo/line.ts'
import { answerTo } from './demo/results.ts'
import { scenes, suggestions } from './demo/scenes.ts'

export interface DemoOptions {
  clock: Clock
  /** Milliseconds between pieces. */
  delay?: number
  /** Milliseconds between the pieces of what is slow on purpose. */
  slow?: number
}

/** A script that needs no key. The same history always gives the same answer. */
export function demoModel({ clock, delay = 15, slow = delay === 0 ? 0 : 100 }: DemoOptions): Model {
  return {
    name: 'demo',
    accepts: ['image/*', 'audio/*', 'video/*', 'application/*', 'text/*'],
    async *stream(request, signal) {
      let words = 0
      for (const { event, pace } of eventsOf(request)) {
        const wait = pace === 'slow' ? slow : delay
        if (wait > 0 && pace !== 'none') await clock.sleep(wait, signal)
        signal.throwIfAborted()
        if (event instanceof Error) throw event
        if (event.type === 'text' || event.type === 'reasoning') words += countWords(event.text)
        if (event.type === 'call') words += countWords(event.input)
        yield event
      }
      yield { type: 'usage', usage: { inputTokens: wordsIn(request), outputTokens: words } }
    },
  }
}

interface Beat {
  event: ModelEvent | Error
  pace: 'usual' | 'slow' | 'none'
}

function* eventsOf(request: ModelRequest): Iterable<Beat> {
  const callId = callIds(request.messages)
  for (const line of linesFor(request).map((line) => possible(line, request))) {
    const pace = 'slow' in line && line.slow ? 'slow' : 'usual'
    if (line.type === 'fail') {
      yield { event: new RuntimeError('model_request', line.message), pace }
    } else if (line.type === 'call') {
      const call = { callId: callId(), name: line.name }
      const input = JSON.stringify(line.input)
      for (const text of piecesOf(input, 3)) yield { event: { type: 'input', ...call, text }, pace }
      yield { event: { type: 'call', ...call, input }, pace: 'none' }
    } else {
      const type = line.type === 'say' ? 'text' : 'reasoning'
      for (const text of line.pieces) yield { event: { type, text }, pace }
    }
  }
}

// Some patterns look at every position of the text, which must not take long.
const longestRead = 20_000

function linesFor({ messages, parameters }: ModelRequest): Line[] {
  const { toolChoice } = parameters ?? {}
  if (typeof toolChoice === 'object') return [call(toolChoice.name, { suggestions })]
  const at = messages.findLastIndex((message) => message.role === 'user')
  const asked = at < 0 ? '' : textOf(messages[at]!).trim()
  if (asked.length > longestRead) {
    return [say(`I am the demo model: I read up to ${longestRead} characters, and this is more.`)]
  }
  const results = messages.slice(at + 1).filter((message) => message.role === 'tool')
  const sent = at < 0 ? [] : messages[at]!.parts.filter((part) => part.type === 'media')
  if (sent.length > 0) return [say(`I cannot look inside, but I was given ${described(sent)}.`)]
  for (const scene of scenes) {
    const match = scene.when.exec(asked)
    if (!match) continue
    if (results.length === 0) return scene.play(match)
    return scene.after?.(match) ?? answerTo(results)
  }
  return []
}

function described(media: Extract<Part, { type: 'media' }>[]): string {
  return media
    .map(({ mediaType, data, url }) => {
      const size = data === undefined ? '' : ` of ${Buffer.byteLength(data, 'base64')} bytes`
      return `${mediaType}${size}${url === undefined ? '' : ` at ${brief(url)}`}`
    })
    .join(' and ')
}

/** A call that cannot be made is told instead. */
function possible(line: Line, { tools, parameters }: ModelRequest): Line {
  if (line.type !== 'call') return line
  const offered = tools.some((tool) => tool.name === line.name)
  if (offered && parameters?.toolChoice !== 'none') return line
  return say(`I would call the tool ${line.name} here, but it is not offered to me. `)
}

/** Unique in a thread, for its messages only grow, and the same again for the same history. */
function callIds(messages: readonly Message[]): () => string {
  const hash = sha256(`${messages.length}:${messages.at(-1)?.id ?? ''}`).slice(0, 12)
  let made = 0
  return () => `call_${hash}_${++made}`
}

/** Counts without a list of the words: a history may have two million characters. */
function countWords(text: string): number {
  let words = 0
  let inWord = false
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    const isSpace = code <= 32 || code === 160
    if (!isSpace && !inWord) words++
    inWord = !isSpace
  }
  return words
}

const wordsIn = ({ system, messages }: ModelRequest) =>
  [...system, ...messages.map(textOf)].reduce((sum, text) => sum + countWords(text), 0)
