import { setImmediate } from 'node:timers/promises'
import { isBase64 } from '../lib/base64.ts'
import type { ByteCache } from '../lib/byte-cache.ts'
import { canonical, digestOf, digestOnce, sha256 } from '../lib/canonical.ts'
import { newId } from '../lib/ids.ts'
import { jsonSteps, unhurried } from '../lib/json-steps.ts'
import { pauseBefore, pauses } from '../lib/pause.ts'
import type { Draft, Known } from './entries.ts'
import { RuntimeError } from './errors.ts'
import type { Message, Part, StoredData } from './messages.ts'
import type { Store } from './store.ts'

/**
 * Large media stay in the journal. The folded state holds a reference to them, by the digest of their
 * data, and the data is read again when a model or a client needs it. A thread that already holds the
 * same data writes the reference only.
 */

/** Characters of base64 from which on the data of a part is left in the journal. */
export const largeDataLength = 16 * 1024

type Media = Extract<Part, { type: 'media' }>

const references = new WeakMap<Media, StoredData | undefined>()

/**
 * The reference to a part's data, or undefined if the data stays in the part: it is small, or not base64, so that
 * it could not replace its marker in a JSON text. A part that is written and then folded is digested once.
 */
function referenceTo(part: Media): StoredData | undefined {
  const { data } = part
  if (data === undefined || data.length < largeDataLength) return undefined
  if (!references.has(part))
    references.set(part, isBase64(data) ? { digest: sha256(data), length: data.length } : undefined)
  return references.get(part)
}

/** The part without its data, if that is large. */
function light(part: Part): Part {
  const stored = part.type === 'media' ? referenceTo(part) : undefined
  if (!stored) return part
  const { data, ...rest } = part as Media
  return { ...rest, stored }
}

/** The entry as it is folded: without the data of large parts. */
export function lightened(entry: Known): Known {
  if (entry.kind !== 'message.added') return entry
  const { message } = entry.body
  const parts = message.parts.map(light)
  if (parts.every((part, i) => part === message.parts[i])) return entry
  return { ...entry, body: { ...entry.body, message: { ...message, parts } } }
}

/** The drafts, with a reference in place of data that the thread holds, or that an earlier draft brings. */
export function deduplicated(
  drafts: readonly Draft[],
  large: ReadonlyMap<string, number>,
): readonly Draft[] {
  const brought = new Set<string>()
  return drafts.map((draft) => {
    if (draft.kind !== 'message.added') return draft
    const { message } = draft.body
    const parts = message.parts.map((part) => {
      const { stored } = light(part) as Media
      if (!stored || (part as Media).stored) return part
      if (large.has(stored.digest) || brought.has(stored.digest)) return light(part)
      brought.add(stored.digest)
      return part
    })
    if (parts.every((part, i) => part === message.parts[i])) return draft
    return { ...draft, body: { ...draft.body, message: { ...message, parts } } }
  })
}

/** Whether two lists of parts say the same, whether or not their data is at hand. */
export const sameParts = (a: readonly Part[], b: readonly Part[]): boolean =>
  digestOf(a.map(light)) === digestOf(b.map(light))

const isStored = (part: Part): part is Media & { stored: StoredData } =>
  part.type === 'media' && part.stored !== undefined

export interface LargePlace {
  store: Store
  /** Data that was read lately, by thread and digest. */
  cache?: ByteCache | undefined
  threadId: string
  /** The entries that hold the data, by its digest. */
  large: ReadonlyMap<string, number>
}

/** The messages with the data of their large parts. */
export async function whole(messages: readonly Message[], at: LargePlace): Promise<Message[]> {
  const all: Message[] = []
  for (const message of messages) {
    if (!message.parts.some(isStored)) {
      all.push(message)
      continue
    }
    const parts: Part[] = []
    for (const part of message.parts) {
      if (!isStored(part)) parts.push(part)
      else {
        const { stored, ...rest } = part
        parts.push({ ...rest, data: await load(stored.digest, at) })
      }
    }
    all.push({ ...message, parts })
  }
  return all
}

const known = new WeakMap<Message, string>()

/** Digests of whole messages. Each is worked out once, so that the data is not read again for it. */
export async function digestsOf(messages: readonly Message[], at: LargePlace): Promise<string[]> {
  const all: string[] = []
  await pauseBefore(messages.length)
  const pause = pauses()
  for (const message of messages) {
    await pause()
    if (!message.parts.some(isStored)) {
      all.push(digestOnce(message))
      continue
    }
    const digest = known.get(message) ?? (await digestOfWhole(message, at))
    known.set(message, digest)
    all.push(digest)
  }
  return all
}

/** The same digest as of the whole message, without serializing megabytes. Lets other work run first. */
async function digestOfWhole(message: Message, at: LargePlace): Promise<string> {
  const parts = message.parts.map((part) => {
    if (!isStored(part)) return part
    const { stored, ...rest } = part
    return { ...rest, data: markerOf(stored) }
  })
  const text = await filled(canonical({ ...message, parts }), at)
  await setImmediate()
  return sha256(text)
}

/** The body of a draft as JSON. Inserts large data into the text, which is faster than serializing it. */
export function serializeBody({ kind, body }: Draft): string {
  if (kind !== 'message.added') return JSON.stringify(body)
  const { message } = body
  const data = new Map<string, string>()
  const parts = message.parts.map((part) => {
    const stored = part.type === 'media' ? referenceTo(part) : undefined
    if (!stored) return part
    data.set(stored.digest, (part as Media).data!)
    return { ...part, data: markerOf(stored) }
  })
  if (data.size === 0) return JSON.stringify(body)
  const pieces = splitAtMarkers(JSON.stringify({ ...body, message: { ...message, parts } }))
  for (let i = 1; i < pieces.length; i += 2) pieces[i] = data.get(pieces[i]!)!
  return pieces.join('')
}

/** Random and never sent to a client, so no client can write a marker. */
const secret = newId('large')

/** Stands for the data of a part in a text that `filled` makes whole. JSON leaves it as it is. */
export const markerOf = ({ digest }: StoredData): string => `${secret}-${digest}`

/** Text and digests in turn: texts at even indexes, the digest of each marker between them. */
function splitAtMarkers(text: string): string[] {
  const [first, ...others] = text.split(`${secret}-`)
  return [first!, ...others.flatMap((piece) => [piece.slice(0, 64), piece.slice(64)])]
}

/** The text with the data in place of its markers. */
export async function filled(text: string, at: LargePlace): Promise<string> {
  if (!text.includes(secret)) return text
  const pieces: string[] = []
  for await (const piece of filledPieces(text, at)) pieces.push(piece)
  return pieces.join('')
}

/**
 * Like `filled`, but yields pieces: the text between two markers, or the data of one marker, loaded when it is needed.
 * Lets other requests run before each load, because cached data is returned without waiting.
 */
async function* filledPieces(
  text: string,
  at: LargePlace,
): AsyncGenerator<string, void, undefined> {
  if (!text.includes(secret)) return yield text
  for (const [i, piece] of splitAtMarkers(text).entries()) {
    if (i % 2 === 0) yield piece
    else {
      await setImmediate()
      yield await load(piece, at)
    }
  }
}

/** The JSON of a value with the data in place of the markers, in steps. Lets other requests run before each step. */
export async function* filledSteps(
  value: unknown,
  at: LargePlace,
): AsyncGenerator<string, void, undefined> {
  for await (const step of unhurried(jsonSteps(value))) yield* filledPieces(step, at)
}

async function load(digest: string, { store, cache, threadId, large }: LargePlace) {
  const key = cacheKey(threadId, digest)
  const cached = cache?.get(key)
  if (cached !== undefined) return cached
  const seq = large.get(digest)
  const [entry] = seq === undefined ? [] : await store.read(threadId, { after: seq - 1, limit: 1 })
  const { message } = entry ? (JSON.parse(entry.body) as { message?: Message }) : {}
  for (const part of message?.parts ?? []) {
    if (part.type !== 'media' || part.data === undefined || sha256(part.data) !== digest) continue
    cache?.set(key, part.data)
    return part.data
  }
  if (!entry) throw new RuntimeError('thread_not_found')
  throw new RuntimeError('thread_damaged')
}

/** Caches the data of a written entry, so that the run it starts does not read it from the store. */
export function cacheLarge(entry: Known, { cache, threadId }: LargePlace): void {
  if (!cache || entry.kind !== 'message.added') return
  for (const part of entry.body.message.parts) {
    const stored = part.type === 'media' ? referenceTo(part) : undefined
    if (stored) cache.set(cacheKey(threadId, stored.digest), (part as Media).data!)
  }
}

const cacheKey = (threadId: string, digest: string): string => `${digest} ${threadId}`

/** Forgets what was read of a thread that is no more. */
export const forgetLarge = (cache: ByteCache, threadId: string): void =>
  cache.deleteAll((key) => key.endsWith(` ${threadId}`))
