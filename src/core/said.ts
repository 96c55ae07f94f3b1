import { keyOfWord, wordsOf } from '../lib/words.ts'
import type { Body, Entry } from './entries.ts'
import { RuntimeError } from './errors.ts'
import { textOf } from './messages.ts'
import type { Finding, Hit } from './store.ts'

/**
 * What is found when somebody looks for words. Stores decide by their indexes where it is worth looking;
 * whether something is found is decided here, by the entry itself, the same for all of them.
 */
const most = { text: 65_536, asked: 16, words: 64, excerpt: 300 }

export interface Said {
  role: string
  text: string
}

/** What an entry says to the owner of its thread; of a very long text its beginning. */
export function saidIn({ kind, body, keyId }: Pick<Entry, 'kind' | 'body' | 'keyId'>) {
  if (kind !== 'message.added' || keyId !== undefined) return undefined
  try {
    const { message, for: whom, path } = JSON.parse(body) as Body<'message.added'>
    // What sub-agents said is in what came of it.
    if (whom === 'model' || path !== undefined || message.role === 'tool') return undefined
    const text = textOf(message).slice(0, most.text)
    return text === '' ? undefined : ({ role: message.role, text } satisfies Said)
  } catch {
    return undefined // a body that is not one of ours says nothing
  }
}

/** What is looked for. */
export interface Wanted {
  /** All of them; the words of each one after the other, as they were asked for. */
  phrases: string[][]
  /** Of all words: whatever has them all may be a hit, nothing else can be. */
  keys: number[]
}

/** Undefined when nothing is asked for: then nothing is found. There are no operators in it. */
export function wantedOf(asked: readonly string[]): Wanted | undefined {
  const phrases = asked
    .slice(0, most.asked)
    .map((one) => wordsOf(one.slice(0, most.text)).map(({ word }) => word))
    .map((words) => words.slice(0, most.words))
    .filter((words) => words.length > 0)
  if (phrases.length === 0) return undefined
  return { phrases, keys: [...new Set(phrases.flat().map(keyOfWord))] }
}

export function hitIn(entry: Entry, clientId: string, wanted: Wanted): Hit | undefined {
  const said = saidIn(entry)
  const excerpt = said && excerptOf(said.text, wanted.phrases)
  if (said === undefined || excerpt === undefined) return undefined
  const { threadId, seq, at } = entry
  return { threadId, clientId, seq, at, role: said.role, excerpt }
}

/** The text around the first of the phrases, if all of them are in it. */
function excerptOf(text: string, phrases: readonly string[][]): string | undefined {
  const words = wordsOf(text)
  const begins = phrases.map((phrase) =>
    words.findIndex((_, n) => phrase.every((word, i) => words[n + i]?.word === word)),
  )
  if (begins.includes(-1)) return undefined
  const at = words[Math.min(...begins)]!.at
  const from = Math.max(0, at - most.excerpt / 3)
  const cut = text.slice(from, from + most.excerpt).toWellFormed()
  return `${from > 0 ? '…' : ''}${cut}${from + most.excerpt < text.length ? '…' : ''}`
}

/** Where a hit stands among others. */
export type Place = Pick<Hit, 'at' | 'threadId' | 'seq'>

/** The newest first; of the same time, those of the greater thread, and of that the last. */
export function newestFirst(a: Place, b: Place): number {
  if (a.at !== b.at) return b.at - a.at
  if (a.threadId !== b.threadId) return a.threadId < b.threadId ? 1 : -1
  return b.seq - a.seq
}

/** The first hits of those that are given in order. */
export function findingOf(hits: readonly Hit[], limit: number, cut = false): Finding {
  const rows = hits.slice(0, Math.max(0, limit))
  const last = rows.at(-1)
  const more = last && hits.length > rows.length
  return { rows, ...(more && { next: placeAfter(last) }), ...(cut && { cut }) }
}

export function placeAfter({ at, threadId, seq }: Place): string {
  return Buffer.from(JSON.stringify(['said', at, threadId, seq])).toString('base64url')
}

export function placeIn(cursor: string | undefined): Place | undefined {
  if (cursor === undefined) return undefined
  try {
    const [made, at, threadId, seq] = JSON.parse(Buffer.from(cursor, 'base64url').toString())
    const numbers = Number.isSafeInteger(at) && Number.isSafeInteger(seq)
    if (made === 'said' && numbers && typeof threadId === 'string') return { at, threadId, seq }
  } catch {}
  throw new RuntimeError('invalid_cursor', undefined, { field: 'cursor' })
}
