import type { Entry } from '../../core/entries.ts'
import { findingOf, hitIn, placeAfter, placeIn, wantedOf } from '../../core/said.ts'
import type { Finding, FindQuery, Hit } from '../../core/store.ts'
import { type Behind, catchUp } from './catch-up.ts'
import { type Found, threadOf } from './rows.ts'
import type { Query, Statements } from './statements.ts'
import { keyOf, unpack } from './text.ts'

/** Steps of catching up that a search takes itself, and texts that it looks at for one page. */
const most = { steps: 50, texts: 2_000 }

/** By the index to what has the words, from there to the entries: these decide. */
export async function find(query: Query, sql: Statements, asked: FindQuery): Promise<Finding> {
  let after = placeIn(asked.cursor)
  const wanted = wantedOf(asked.words)
  if (!wanted) return { rows: [] }
  const limit = Math.max(0, asked.limit)
  const owner = [keyOf(asked.tenant), keyOf(asked.owner)]
  const { key, cut } = await prepare(query, sql, owner)
  const keys = wanted.keys.map((each) => each ^ key)
  const except = asked.except === undefined ? null : keyOf(asked.except)
  let place = after ? [after.at, keyOf(after.threadId), after.seq] : [null, null, null]
  const hits: Hit[] = []
  let looked = 0
  for (let size = limit + 1; looked < most.texts && hits.length <= limit; size = 500) {
    looked += size
    const found = await query<Said>(sql.said, [...owner, keys, except, ...place, size])
    for (const { place_of, at, seq, envelope, body, ...row } of found) {
      place = [at, place_of, seq]
      if (envelope === null || body === null) continue
      const { threadId, clientId } = threadOf(row)
      after = { at, threadId, seq }
      const hit = hitIn({ ...envelope, seq, body: unpack(body) }, clientId, wanted)
      if (hit) hits.push(hit)
    }
    if (found.length < size) return findingOf(hits, limit, cut)
  }
  const finding = findingOf(hits, limit, cut)
  // Many have the words and not one after the other: whoever wants to can go on from here.
  return finding.next || !after ? finding : { ...finding, next: placeAfter(after) }
}

/** The owner's number, when all that was said by the owner is in the index; `cut` when it is too much for now. */
async function prepare(query: Query, sql: Statements, owner: string[]) {
  for (let steps = 0; ; ) {
    const found = await query<Behind & { key: number }>(sql.behindOf, owner)
    const { key } = found[0]!
    const behind = found.filter(({ thread_id }) => thread_id !== null)
    if (behind.length === 0) return { key, cut: false }
    if (steps >= most.steps) return { key, cut: true }
    for (const each of behind) await catchUp(query, sql, each)
    steps += behind.length
  }
}

/** Without a thread of the owner there is no entry. */
type Said = Found & {
  place_of: string
  at: number
  seq: number
  envelope: Omit<Entry, 'seq' | 'body'> | null
  body: string | null
}
