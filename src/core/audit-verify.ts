import { sha256 } from '../lib/canonical.ts'
import type { Key } from '../lib/mac.ts'
import {
  type AuditKeys,
  chainFact,
  linkedOf,
  linkOf,
  overOf,
  refOf,
  sealOf,
  tagOf,
  threadKeys,
} from './audit.ts'
import type { Entry } from './entries.ts'
import type { Kept } from './store.ts'

/** What can be wrong with an entry, and the sentence for it. */
export const faults = {
  body: 'the body was changed',
  entry: 'the envelope or the marks were changed',
  link: 'the link was changed',
  missing: 'what was here is missing',
  reordered: 'not in its place',
  repeated: 'here a second time',
  unlinked: 'without a link: written by a server that has no key, or by somebody else',
  before: 'changed since the chain began after them',
  key: 'linked with a key that was not given',
  unreadable: 'cannot be read',
  head: 'not what it was when its head was recorded',
  truncated: 'missing, though a head of it was recorded',
  forged: 'the residue is not one that Handrail made',
} as const

export type Fault = keyof typeof faults

/** From `seq` to `to`. */
export interface Problem {
  seq: number
  to: number
  fault: Fault
}

export interface Verdict {
  verdict: 'ok' | 'broken' | 'unchained' | 'erased'
  /** The last entry. */
  seq: number
  /** The first one with a link; what is before it is covered by that. */
  since: number | null
  head: string | null
  problems: Problem[]
}

/** Links of a thread that were exported, by seq. */
export type Heads = ReadonlyMap<number, ReadonlySet<string>>

/** Links that are remembered, to tell where an entry that is out of its place belongs. */
const window = 1_000
const mostProblems = 100

/** Follows the chain of one thread, entry by entry. Never throws on what it is given. */
export class Verifier {
  readonly #keyOf: (keyId: string) => Key | undefined
  readonly #heads: Heads
  #seq = 0
  #since: number | null = null
  #link: string | null = null
  #over: string | null = null
  /** What the next entry may go on from: the link that is there, and the one that should be. */
  #prevs: (string | null)[] = [null]
  readonly #seen = new Set<string>()
  readonly #problems: Problem[] = []
  /** An entry that goes on from a link not seen yet. */
  #doubt: { problem: Problem; follows(link: string): boolean } | undefined
  #last: { seq: number; tx: string; marked: boolean } | undefined

  constructor(keys: AuditKeys, threadId: string, heads: Heads = new Map()) {
    this.#keyOf = threadKeys(keys, refOf(threadId))
    this.#heads = heads
  }

  get seq(): number {
    return this.#seq
  }

  take({ entry, marks }: Kept): void {
    const { seq, link, body, digest } = entry
    if (seq <= this.#seq) {
      this.#find(seq, link !== undefined && this.#seen.has(link) ? 'repeated' : 'reordered')
      return
    }
    const gap = seq > this.#seq + 1
    if (gap) {
      this.#find(this.#seq + 1, 'missing', seq - 1)
      this.#last = undefined
    }
    this.#seq = seq
    this.#checkMark(entry, marks?.facts?.[chainFact])
    const changed = sha256(body) !== digest
    if (changed) this.#find(seq, 'body')
    if (link === undefined) {
      if (this.#since !== null) this.#find(seq, 'unlinked')
      this.#over = overOf(this.#over, entry, marks)
    } else this.#follow({ entry, ...(marks && { marks }) }, link, gap || changed)
    const heads = this.#heads.get(seq)
    if (heads && (link === undefined || [...heads].some((head) => head !== link)))
      this.#find(seq, 'head')
  }

  /** The next entry cannot be read, or none up to `to`. */
  unreadable(to = 0): void {
    const seq = this.#seq + 1
    this.#seq = Math.max(seq, to)
    this.#find(seq, 'unreadable', this.#seq)
    this.#prevs = []
    this.#last = undefined
  }

  end(): Verdict {
    this.#checkMark(undefined, undefined)
    const exported = Math.max(0, ...this.#heads.keys())
    if (exported > this.#seq) this.#find(this.#seq + 1, 'truncated', exported)
    const problems = this.#problems.map((one) => ({ ...one })).sort((a, b) => a.seq - b.seq)
    const fine = this.#since === null ? 'unchained' : 'ok'
    const verdict = problems.length > 0 ? 'broken' : fine
    return { verdict, seq: this.#seq, since: this.#since, head: this.#link, problems }
  }

  #follow(kept: Kept, link: string, excused: boolean): void {
    const { entry } = kept
    const { seq } = entry
    const [keyId = '', tag, own] = link.split('.')
    const key = this.#keyOf(keyId)
    const first = this.#since === null
    const over = this.#over
    this.#since ??= seq
    this.#over = null
    this.#link = link
    const prevs = this.#prevs
    this.#prevs = [link]
    if (!key) {
      this.#find(seq, 'key')
      return
    }
    const seal = sealOf(key, entry, kept.marks)
    const from = (prev: string | null, covers: string | null) =>
      linkOf(keyId, key, linkedOf(entry, seal, prev, covers))
    const found = prevs.findIndex((prev) => from(prev, over) === link)
    if (found !== -1) {
      if (found === 1 && this.#doubt) this.#doubt.problem.fault = 'link'
    } else if (over !== null && prevs.some((prev) => from(prev, null) === link)) {
      if (first) this.#find(1, 'unlinked', seq - 1) // it began the thread
    } else {
      this.#prevs.push(from(prevs[0] ?? null, over))
      const altered = prevs.some((prev) => from(prev, over).endsWith(`.${own}`))
      if (altered) this.#find(seq, 'link')
      else if (tagOf(seal) !== tag) this.#find(seq, excused ? 'body' : 'entry')
      else if (this.#seen.has(link)) this.#find(seq, 'repeated')
      else if (first && over !== null) this.#find(1, 'before', seq - 1)
      else if ([...this.#seen].some((prev) => from(prev, null) === link))
        this.#find(seq, 'reordered')
      else if (!excused && over === null && prevs.length > 0) {
        const problem = this.#find(seq, 'missing')
        this.#doubt = { problem, follows: (prev) => from(prev, null) === link }
      }
    }
    if (this.#doubt?.follows(link)) this.#doubt.problem.fault = 'reordered'
    this.#remember(link)
  }

  /** The last entry of a transition, and no other, says its link to the store's facts. */
  #checkMark(next: Entry | undefined, mark: string | null | undefined): void {
    const last = this.#last
    if (last && last.marked !== (next?.tx !== last.tx)) this.#find(last.seq, 'entry')
    this.#last = undefined
    if (next?.link === undefined) return
    if (mark !== undefined && mark !== next.link) this.#find(next.seq, 'entry')
    this.#last = { seq: next.seq, tx: next.tx, marked: mark !== undefined }
  }

  #remember(link: string): void {
    this.#seen.add(link)
    if (this.#seen.size > window)
      for (const oldest of this.#seen) return void this.#seen.delete(oldest)
  }

  #find(seq: number, fault: Fault, to = seq): Problem {
    const last = this.#problems.at(-1)
    if (last && last.seq <= seq && to <= last.to) return last // one is enough
    if (last?.fault === fault && last.to + 1 === seq && last !== this.#doubt?.problem) {
      last.to = to
      return last
    }
    const problem = { seq, to, fault }
    if (this.#problems.length < mostProblems) this.#problems.push(problem)
    return problem
  }
}

/** Of a whole thread, as a store has it. */
export async function verifyThread(
  entries: AsyncIterable<Kept | undefined>,
  verifier: Verifier,
): Promise<Verdict> {
  for await (const kept of entries) kept ? verifier.take(kept) : verifier.unreadable()
  return verifier.end()
}
