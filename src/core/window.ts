import type { Message, Part } from './messages.ts'
import type { ModelRequest } from './model.ts'

/** What is left of a history after a cut, as a share of the room: the next cut is far away. */
const afterCut = 0.7

export interface Fitted {
  request: ModelRequest
  /** The message that the history begins with, if it was cut just now. */
  from?: string
  /** Messages that are left out, and long texts that were cut. */
  left: number
  cut: number
}

/**
 * The request as it fits into `room` tokens. Instructions, tools and the last turn stay; the oldest
 * turns are left out whole. A history that was cut at one of `cuts` stays cut there, so that what
 * a provider has cached is of use. If the last turn alone is too long, its long results are cut, and
 * then its oldest steps are left out. The last step stays, even if it seems too long: tokens are estimated,
 * and only the provider can say that it is.
 */
export function fitted(request: ModelRequest, room: number, cuts: readonly string[]): Fitted {
  const { messages } = request
  const fixed = fixedTokens(request)
  const free = room - fixed
  const before = cuts.map((id) => messages.findIndex((one) => one.id === id))
  const start = Math.max(0, ...before)
  const kept = messages.slice(start)
  if (tokensOf(kept) <= free) return { request: without(request, kept), left: start, cut: 0 }

  const at = cutAt(kept, free)
  const turn = kept.slice(at)
  const found = at > 0 ? { from: turn[0]!.id } : {}
  if (tokensOf(turn) <= free)
    return { request: without(request, turn), ...found, left: start + at, cut: 0 }
  const short = turn.map((message) => shortened(message, free))
  const steps = lastSteps(short, free)
  const cut = short.filter((message, i) => message !== turn[i]).length
  return {
    request: without(request, steps),
    ...found,
    left: messages.length - steps.length,
    cut,
  }
}

/** Tokens of a whole request, estimated. Usually too high, but no upper bound: digits and rare scripts need more. */
export const requestTokens = (request: ModelRequest): number =>
  fixedTokens(request) + tokensOf(request.messages)

const fixedTokens = ({ system, tools }: ModelRequest): number =>
  tokensIn(system.join('\n')) + tools.reduce((sum, tool) => sum + toolTokens(tool), 0)

/** Where the oldest turns end: the first turn that leaves some air, or the last turn there is. */
function cutAt(messages: readonly Message[], free: number): number {
  const turns = messages.flatMap(({ role }, i) =>
    role === 'user' && messages[i - 1]?.role !== 'user' ? [i] : [],
  )
  let rest = tokensOf(messages)
  let from = 0
  for (const turn of turns) {
    rest -= tokensOf(messages.slice(from, turn))
    from = turn
    if (rest <= free * afterCut) break
  }
  return from
}

/** The user's words and the last steps of what followed, a step being a message and its results. */
function lastSteps(turn: readonly Message[], free: number): readonly Message[] {
  const begins = turn.findIndex(({ role }) => role !== 'user')
  if (begins < 0) return turn
  const said = turn.slice(0, begins)
  const starts = turn.flatMap(({ role }, i) => (i >= begins && role !== 'tool' ? [i] : []))
  for (const start of starts) {
    const steps = [...said, ...turn.slice(start)]
    if (tokensOf(steps) <= free * afterCut || start === starts.at(-1)) return steps
  }
  return turn
}

/** A result may have a quarter of the room. */
function shortened(message: Message, free: number): Message {
  const most = Math.max(1_000, Math.floor(free))
  const isLong = (part: Part) => part.type === 'text' && part.text.length > most
  if (message.role !== 'tool' || !message.parts.some(isLong)) return message
  const parts = message.parts.map((part) => {
    if (part.type !== 'text' || !isLong(part)) return part
    const text = `${part.text.slice(0, most)}\n(cut: ${part.text.length - most} more characters)`
    return { ...part, text }
  })
  return { ...message, parts }
}

function without(request: ModelRequest, messages: readonly Message[]): ModelRequest {
  const left = request.messages.length - messages.length
  if (left === 0) return { ...request, messages }
  const note = `The ${left} oldest messages of this conversation are left out: it is too long to send.`
  return { ...request, messages, system: [...request.system, note] }
}

const tokensOf = (messages: readonly Message[]): number =>
  messages.reduce((sum, message) => sum + messageTokens(message), 0)

const known = new WeakMap<object, number>()

/** Messages and tools never change: each is counted once. */
function once(value: object, count: () => number): number {
  let tokens = known.get(value)
  if (tokens === undefined) {
    tokens = count()
    known.set(value, tokens)
  }
  return tokens
}

const messageTokens = (message: Message): number =>
  once(message, () => message.parts.reduce((sum, part) => sum + partTokens(part), 4))

const toolTokens = (tool: object): number => once(tool, () => tokensIn(JSON.stringify(tool)))

const imageTokens = 1_600

function partTokens(part: Part): number {
  if (part.type === 'call') return tokensIn(part.name + part.input) + 8
  if (part.type !== 'media') return tokensIn(part.text)
  const length = part.stored?.length ?? part.data?.length ?? 0
  if (part.mediaType.startsWith('image/')) return imageTokens
  return Math.max(imageTokens, Math.ceil(length / 24))
}

/** By bytes and not characters: scripts that need more bytes need more tokens too. */
const tokensIn = (text: string): number => Math.ceil(Buffer.byteLength(text) / 3.5)
