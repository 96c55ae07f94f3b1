import { type Key, mac } from '../lib/mac.ts'
import { type AuditKeys, chainFact, linkOf, overOf, refOf, sealOf, threadKeys } from './audit.ts'
import { type Fault, type Heads, type Problem, type Verdict, Verifier } from './audit-verify.ts'
import type { Actor } from './entries.ts'
import { isRuntimeError } from './errors.ts'
import type { Guard, Kept, Residue, Store } from './store.ts'

/**
 * What is left of a thread that was erased: enough to compute every link again, and nothing that was
 * said, or by whom. Its own MAC tells it from one that somebody made to hide what he removed.
 */
interface Content {
  v: 1
  ref: string
  seq: number
  since: number
  head: string
  erasedAt: number
  /** What was wrong already when it was erased. */
  problems: Problem[]
  keyId: string
  rows: Row[]
}

/** `who` counts the people and agents of the thread in the order in which they came. */
export type Row = [
  seq: number,
  keyId: string,
  kind: string,
  at: number,
  by: string,
  wire: string | null,
  who: number,
  seal: string,
  over: string | null,
]

const overtakings = 50

/** Erases a thread; if it was linked, its residue is kept in the same atomic step. */
export async function eraseThread(
  store: Store,
  audit: AuditKeys | undefined,
  threadId: string,
  guard: Guard,
  at: number,
): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    const made = audit && (await residueOf(audit, threadId, entriesOf(store, threadId), at))
    if (!made) return await store.erase(threadId, guard)
    const expect = [...(guard.expect ?? []), { fact: chainFact, is: made.head }]
    try {
      return await store.erase(threadId, { ...guard, expect }, made.residue)
    } catch (error) {
      const overtaken = isRuntimeError(error, 'journal_conflict') && error.data?.fact === chainFact
      if (!overtaken || attempt >= overtakings) throw error
    }
  }
}

/** Bytes that are read at once. */
const pageBytes = 4_000_000

async function* entriesOf(store: Store, threadId: string): AsyncGenerator<Kept> {
  for (let after = 0; ; ) {
    const page = await store.kept(threadId, { after, bytes: pageBytes })
    if (page.length === 0) return
    yield* page
    after = page.at(-1)!.entry.seq
  }
}

/** Nothing when no entry is linked. */
export async function residueOf(
  keys: AuditKeys,
  threadId: string,
  entries: AsyncIterable<Kept>,
  erasedAt: number,
): Promise<{ residue: Residue; head: string } | undefined> {
  const ref = refOf(threadId)
  const verifier = new Verifier(keys, threadId)
  const verified = async function* () {
    for await (const kept of entries) {
      verifier.take(kept)
      yield kept
    }
  }
  const rows: Row[] = []
  for await (const { row } of rowsOf(keys, ref, verified())) rows.push(row)
  const { seq, since, head, problems } = verifier.end()
  if (since === null || head === null) return undefined
  const { keyId } = keys[0]
  const about = { v: 1, ref, seq, since, head, erasedAt, problems, keyId } as const
  return { residue: signed({ ...about, rows }, threadKeys(keys, ref)(keyId)!), head }
}

/** The linked entries, each with what its link is made of. */
export async function* rowsOf(
  keys: AuditKeys,
  ref: string,
  entries: AsyncIterable<Kept>,
): AsyncGenerator<{ row: Row; kept: Kept }> {
  const keyOf = threadKeys(keys, ref)
  const numbers = new Map<string, number>()
  let over: string | null = null
  for await (const kept of entries) {
    const { entry, marks } = kept
    const { seq, link, kind, at, actor } = entry
    if (link === undefined) {
      over = overOf(over, entry, marks)
      continue
    }
    const keyId = link.split('.', 1)[0]!
    const key = keyOf(keyId)
    const seal = key ? sealOf(key, entry, marks) : ''
    const who = numberOf(actor, numbers)
    yield { row: [seq, keyId, kind, at, actor.type, actor.wire ?? null, who, seal, over], kept }
    over = null
  }
}

function numberOf({ type, id }: Actor, numbers: Map<string, number>): number {
  const name = `${type} ${id}`
  const number = numbers.get(name) ?? numbers.size + 1
  numbers.set(name, number)
  return number
}

function signed(content: Content, key: Key): Residue {
  const payload = JSON.stringify(content)
  const proof = macOf(key, payload)
  return { id: `${content.ref}.${proof.slice(0, 12)}`, text: `${payload}\n${proof}` }
}

const macOf = (key: Key, payload: string) => mac(key, `residue\n${payload}`)

/** The thread that a residue says it is of. */
export const refOfResidue = ({ id }: Residue): string => id.split('.', 1)[0]!

/** Its links by seq; none if it is not ours. */
export function linksOfResidue(keys: AuditKeys, residue: Residue): Map<number, string> {
  const ref = refOfResidue(residue)
  const keyOf = threadKeys(keys, ref)
  const content = read(residue, ref, keyOf)
  return typeof content === 'string' ? new Map() : linksOf(content, keyOf)
}

/** *erased*, if it was made by us and has all the heads that were exported before. */
export function verifyResidue(
  keys: AuditKeys,
  residue: Residue,
  heads: Heads = new Map(),
): Verdict {
  const ref = refOfResidue(residue)
  const keyOf = threadKeys(keys, ref)
  const content = read(residue, ref, keyOf)
  if (typeof content === 'string') return broken(content)
  const links = linksOf(content, keyOf)
  const { seq, since, head, problems } = content
  const found = [...problems]
  // Also when something was wrong before: that is in the problems then.
  if (problems.length === 0 && links.get(seq) !== head)
    found.push({ seq: 1, to: seq, fault: 'forged' })
  for (const [at, exported] of heads) {
    if (at > seq) found.push({ seq: seq + 1, to: at, fault: 'truncated' })
    else if ([...exported].some((link) => links.get(at) !== link))
      found.push({ seq: at, to: at, fault: 'head' })
  }
  return { verdict: found.length > 0 ? 'broken' : 'erased', seq, since, head, problems: found }
}

function read(
  { id, text }: Residue,
  ref: string,
  keyOf: (keyId: string) => Key | undefined,
): Content | Fault {
  const end = text.lastIndexOf('\n')
  const [payload, proof] = [text.slice(0, Math.max(0, end)), text.slice(end + 1)]
  let content: Content
  try {
    content = JSON.parse(payload) as Content
  } catch {
    return 'unreadable'
  }
  const key = keyOf(String(content?.keyId))
  if (!key) return 'key'
  const own = macOf(key, payload) === proof && id === `${ref}.${proof.slice(0, 12)}`
  return own && content.ref === ref ? content : 'forged'
}

function linksOf({ rows }: Content, keyOf: (keyId: string) => Key | undefined) {
  const links = new Map<number, string>()
  let prev: string | null = null
  for (const [seq, keyId, kind, at, by, wire, , seal, over] of rows) {
    const key = keyOf(keyId)
    prev = key ? linkOf(keyId, key, { prev, over, kind, at, by, wire, seal }) : ''
    links.set(seq, prev)
  }
  return links
}

const broken = (fault: Fault): Verdict => ({
  ...{ verdict: 'broken', seq: 0, since: null, head: null },
  problems: [{ seq: 1, to: 1, fault }],
})
