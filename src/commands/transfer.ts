import { createHash } from 'node:crypto'
import { isRuntimeError } from '../core/errors.ts'
import type { Archive, NewEntry, Store, ThreadRow } from '../core/store.ts'
import { sha256 } from '../lib/canonical.ts'

export type Whole = Store & Archive

export interface Transferred {
  written: number
  /** Were there already, the same to the byte. */
  same: number
  entries: number
  /** Of erased threads. */
  residues: number
  /** Why a thread was left out, one sentence each. */
  refused: string[]
  /** Of all threads that are now on both sides: the same on the way back. */
  digest: string
}

/** Threads under way at once. */
const width = 8

/**
 * Copies every thread, whole. Each is read back and compared before it counts. To be stopped and begun
 * again costs time only; a thread that is different on the other side is left as it is.
 */
export async function transfer(
  from: Whole,
  to: Whole,
  progress: (done: number) => void = () => {},
): Promise<Transferred> {
  const result = { written: 0, same: 0, entries: 0, residues: 0, refused: [] as string[] }
  const digests: string[] = []
  let done = 0
  await eachOf(from.everyThread(), async ({ threadId }) => {
    try {
      const copied = await copy(from, to, threadId)
      if (!copied) return
      result[copied.outcome]++
      result.entries += copied.entries
      digests.push(copied.digest)
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      result.refused.push(`${threadId}: ${error.message}`)
    }
    progress(++done)
  })
  for await (const residue of from.residues()) {
    await to.keepResidue(residue)
    result.residues++
    digests.push(sha256(`${residue.id}\n${residue.text}`))
  }
  return { ...result, digest: sha256(digests.sort().join('\n')) }
}

async function copy(from: Whole, to: Whole, threadId: string) {
  const entries = await from.dump(threadId).catch(unlessDamaged)
  if (entries.length === 0) return undefined // erased since it was listed
  const digest = digestOf(threadId, entries)
  const altered = entries.findIndex((entry) => sha256(entry.body) !== entry.digest)
  if (altered !== -1) throw new Refusal(`entry ${altered + 1} is not what its digest says.`)
  const compare = async () => digestOf(threadId, await to.dump(threadId)) === digest
  if (await to.thread(threadId)) {
    if (await compare()) return { outcome: 'same' as const, entries: entries.length, digest }
    throw new Refusal('the other side has a different thread of this id.')
  }
  await to.restore(threadId, entries).catch((error: unknown) => {
    if (!isRuntimeError(error, 'thread_exists')) throw error
    throw new Refusal('the other side has another thread under its name.')
  })
  if (!(await compare())) throw new Refusal('what was written is not what was read.')
  return { outcome: 'written' as const, entries: entries.length, digest }
}

/** Of all that a journal holds, as both stores write it. */
function digestOf(threadId: string, entries: readonly NewEntry[]): string {
  const hash = createHash('sha256').update(JSON.stringify(threadId))
  for (const { body, marks, ...envelope } of entries)
    hash.update(`\n${JSON.stringify([envelope, marks ?? null, body])}`)
  return hash.digest('hex')
}

class Refusal extends Error {}

function unlessDamaged(error: unknown): never {
  if (!isRuntimeError(error, 'thread_damaged')) throw error
  throw new Refusal('its journal is damaged.')
}

/** Some at a time, in no order. The first failure ends it all. */
export async function eachOf(
  rows: AsyncIterable<ThreadRow>,
  work: (row: ThreadRow) => Promise<void>,
): Promise<void> {
  const under = new Set<Promise<void>>()
  try {
    for await (const row of rows) {
      const working: Promise<void> = work(row).finally(() => under.delete(working))
      working.catch(() => {}) // thrown by whoever waits for it
      under.add(working)
      if (under.size >= width) await Promise.race(under)
    }
    await Promise.all(under)
  } finally {
    await Promise.allSettled(under)
  }
}
