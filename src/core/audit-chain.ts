import type { Key } from '../lib/mac.ts'
import {
  type AuditKeys,
  chainFact,
  linkedOf,
  linkOf,
  overOf,
  refOf,
  sealOf,
  threadKeys,
} from './audit.ts'
import type { ThreadState } from './state.ts'
import type { Guard, NewEntry, Store } from './store.ts'

/** Bytes that are read at once. */
const pageBytes = 4_000_000

/** Makes the links of one thread's entries. */
export class Chain {
  readonly #threadId: string
  readonly #store: Store
  readonly #keyId: string
  readonly #key: Key
  /** Of what is there without a link: worked out once, on threads that are older than their chain. */
  #over: { from: number; to: number; digest: string } | undefined

  constructor(threadId: string, keys: AuditKeys, store: Store) {
    const { keyId } = keys[0]
    this.#threadId = threadId
    this.#store = store
    this.#keyId = keyId
    this.#key = threadKeys(keys, refOf(threadId))(keyId)!
  }

  /** The entries with links that go on from what is folded, and a guard that nobody else went on from it. */
  async link(entries: readonly NewEntry[], guard: Guard, { chain, seq }: ThreadState) {
    let over = await this.#unlinked(chain?.seq ?? 0, seq)
    let prev = chain?.link ?? null
    const linked = entries.map((entry): NewEntry => {
      const seal = sealOf(this.#key, entry, entry.marks)
      const link = linkOf(this.#keyId, this.#key, linkedOf(entry, seal, prev, over))
      prev = link
      over = null
      return { ...entry, link }
    })
    const last = linked.at(-1)
    if (last && prev !== null)
      last.marks = {
        ...last.marks,
        facts: Object.assign(Object.create(null), last.marks?.facts, { [chainFact]: prev }),
      }
    const expect = [...(guard.expect ?? []), { fact: chainFact, is: chain?.link ?? null }]
    return { entries: linked, guard: { ...guard, expect } }
  }

  async #unlinked(from: number, to: number): Promise<string | null> {
    if (from === to) return null
    const known = this.#over?.from === from ? this.#over : undefined
    let over = known?.digest ?? null
    for (let after = known?.to ?? from; after < to; ) {
      const page = await this.#store.kept(this.#threadId, {
        after,
        limit: Math.min(to - after, 1_000),
        bytes: pageBytes,
      })
      if (page.length === 0) break // erased: the write will find out
      for (const { entry, marks } of page) over = overOf(over, entry, marks)
      after += page.length
    }
    if (over !== null) this.#over = { from, to, digest: over }
    return over
  }
}
