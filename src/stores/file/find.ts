import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { findingOf, hitIn, newestFirst, placeIn, type Wanted, wantedOf } from '../../core/said.ts'
import type { Finding, FindQuery, Hit, ThreadRow } from '../../core/store.ts'
import type { Chats } from './chats.ts'
import { forEachOf } from './disk.ts'
import { decodeEntry } from './entry-line.ts'
import { linesOf } from './lines.ts'
import type { Tables } from './tables.ts'
import { journalName, message, type Words } from './words.ts'

interface Parts {
  tables: Tables
  chats: Chats
  /** Milliseconds to find out where to look, and again to look there. */
  patience: number
}

interface Candidate {
  row: ThreadRow
  newest: number
  /** Whether the words are in the file, and lines that it does not have yet. */
  inFile: boolean
  held: Buffer[]
}

/** By the words of each journal to those worth reading, the newest first, until there are enough. */
export async function find(parts: Parts, asked: FindQuery): Promise<Finding> {
  const after = placeIn(asked.cursor)
  const wanted = wantedOf(asked.words)
  if (!wanted) return { rows: [] }
  const { candidates, cut } = await candidatesOf(parts, asked, wanted)
  const limit = Math.max(0, asked.limit)
  const isLate = lateness(parts)
  const hits: Hit[] = []
  for (const candidate of candidates) {
    const last = hits[limit]
    if (last && candidate.newest < last.at) break
    if (isLate()) return findingOf(hits, limit, true)
    const found = await hitsOf(parts, candidate, wanted)
    hits.push(...found.filter((hit) => !after || newestFirst(hit, after) > 0))
    hits.sort(newestFirst)
  }
  return findingOf(hits, limit, cut)
}

const lateness = ({ patience }: Parts) => {
  const until = performance.now() + patience
  return () => performance.now() > until
}

/** The threads that may have it, and whether some could not be asked. */
async function candidatesOf(parts: Parts, { tenant, owner, except }: FindQuery, wanted: Wanted) {
  const { tables, chats } = parts
  const { rows } = tables.threads({ tenant, owner, limit: Number.MAX_SAFE_INTEGER })
  const isLate = lateness(parts)
  const candidates: Candidate[] = []
  let cut = false
  let asked = 0
  await forEachOf(rows, async (row) => {
    if (row.threadId === except) return
    if (++asked % 1_000 === 0) await turn()
    if (isLate() || chats.damaged.has(row.threadId)) cut = true
    else candidates.push(...(await candidateOf(chats, row, wanted)))
  })
  candidates.sort((a, b) => b.newest - a.newest)
  return { candidates, cut }
}

async function candidateOf(chats: Chats, row: ThreadRow, { keys }: Wanted): Promise<Candidate[]> {
  const { threadId } = row
  // Before the file is looked at, so that nothing is in neither.
  const held = chats.peek(threadId)?.held.filter((line) => line.includes(message)) ?? []
  const words = hasFile(chats, threadId)
    ? (chats.words.peek(threadId) ?? (await chats.words.look(threadId)))
    : undefined
  const inFile = words !== undefined && keys.every((key) => has(words, key))
  if (held.length > 0) return [{ row, newest: Number.POSITIVE_INFINITY, inFile, held }]
  return inFile ? [{ row, newest: words.newest, inFile, held }] : []
}

/** What is there of an erased thread until it is removed is none of its successor's. */
const hasFile = (chats: Chats, threadId: string) => !chats.erased.has(threadId)

function has({ keys }: Words, key: number): boolean {
  let low = 0
  let high = keys.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (keys[middle]! < key) low = middle + 1
    else high = middle
  }
  return keys[low] === key
}

async function hitsOf({ chats, tables }: Parts, candidate: Candidate, wanted: Wanted) {
  const { row, inFile, held } = candidate
  const { threadId, clientId } = row
  const hits = new Map<number, Hit>()
  const look = (line: Buffer) => {
    const entry = line.includes(message) ? decodeEntry(line)?.entry : undefined
    const hit = entry && hitIn(entry, clientId, wanted)
    if (hit) hits.set(hit.seq, hit)
  }
  const path = join(chats.folderOf(threadId), journalName)
  if (inFile) for await (const { bytes } of linesOf(path)) look(bytes)
  for (const line of held) look(line)
  const isErased = !tables.rows.has(threadId) || (inFile && !hasFile(chats, threadId))
  return isErased ? [] : [...hits.values()]
}
