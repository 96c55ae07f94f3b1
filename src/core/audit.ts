import { sha256 } from '../lib/canonical.ts'
import { derive, type Key, mac } from '../lib/mac.ts'
import type { Entry } from './entries.ts'
import type { Marks, NewEntry } from './store.ts'

/**
 * The chain that makes a journal tamper-evident. Every entry has a link: a MAC, with the thread's own
 * key, of the link before it, of what stays when a thread is erased, and of a digest of all the rest.
 */
export interface AuditKey {
  keyId: string
  secret: string
}

/** The first makes links, all of them prove. */
export type AuditKeys = readonly [AuditKey, ...AuditKey[]]

/** Keys are known by a digest of themselves: a new one takes no more than to be put first. */
export function auditKeys(secrets: readonly string[]): AuditKeys | undefined {
  const keys = secrets.map((secret) => ({ keyId: sha256(`key id\n${secret}`).slice(0, 8), secret }))
  const [first, ...rest] = keys
  return first && [first, ...rest]
}

/** What a thread is called where it must not be known: after it was erased, and outside of the store. */
export const refOf = (threadId: string): string =>
  Buffer.from(sha256(`thread\n${threadId}`), 'hex')
    .toString('base64url')
    .slice(0, 22)

/** The thread's own keys, each made when it is first needed. */
export function threadKeys(keys: AuditKeys, ref: string): (keyId: string) => Key | undefined {
  const made = new Map<string, Key>()
  return (keyId) => {
    const known = made.get(keyId)
    const secret = keys.find((one) => one.keyId === keyId)?.secret
    if (known || secret === undefined) return known
    const key = derive(secret, `thread ${ref}`)
    made.set(keyId, key)
    return key
  }
}

/** The fact that the store guards: two cannot go on from the same link. */
export const chainFact = 'chain'

/** What a link vouches for. All of it but the seal says nothing about anybody. */
export interface Linked {
  /** The link before it, and a digest of what was written since without one. */
  prev: string | null
  over: string | null
  kind: string
  at: number
  by: string
  wire: string | null
  seal: string
}

export const linkedOf = (
  { kind, at, actor }: Pick<Entry, 'kind' | 'at' | 'actor'>,
  seal: string,
  prev: string | null,
  over: string | null,
): Linked => ({ prev, over, kind, at, by: actor.type, wire: actor.wire ?? null, seal })

/** `key id . first characters of the seal . mac`: the middle tells a changed entry from a wrong place. */
export function linkOf(keyId: string, key: Key, linked: Linked): string {
  const { prev, over, kind, at, by, wire, seal } = linked
  return `${keyId}.${tagOf(seal)}.${mac(key, JSON.stringify([prev, over, kind, at, by, wire, seal]))}`
}

export const tagOf = (seal: string): string => seal.slice(0, 8)

/**
 * Of the whole entry. The ids in it are 80 bits of chance each, and the key is a secret: once the entry
 * is gone nobody can try what it may have said.
 */
export const sealOf = (key: Key, entry: Entry | NewEntry, marks: Marks | undefined): string =>
  mac(key, plainOf(entry, marks))

/** Entries without a link, one after the other. */
export const overOf = (over: string | null, entry: Entry, marks: Marks | undefined): string =>
  sha256(`${over}\n${plainOf(entry, marks)}`)

/** The body is in it by its digest. */
function plainOf(entry: Entry | NewEntry, marks: Marks | undefined): string {
  const { seq, link, body, marks: _, ...envelope } = entry as Entry & NewEntry
  return JSON.stringify([envelope, bare(marks)])
}

/** Marks as they were before the link was known. */
function bare(marks: Marks | undefined): Marks | null {
  if (marks?.facts?.[chainFact] === undefined) return marks ?? null
  const { [chainFact]: _, ...facts } = marks.facts
  if (Object.keys(facts).length > 0) return { ...marks, facts }
  const { facts: __, ...rest } = marks
  return rest
}
