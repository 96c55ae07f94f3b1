import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Kept, Reader } from '../../core/store.ts'
import { isMissing } from './disk.ts'
import { decodeEntry, endsTransition } from './entry-line.ts'
import { linesOf } from './lines.ts'
import { decodeName, encodeName } from './names.ts'
import { peekLog } from './read-log.ts'
import { residuesIn } from './residues.ts'
import { journalName } from './words.ts'

/** Milliseconds between two looks at a journal whose end is not whole, and how often. */
const pause = 100
const mostLooks = 5

interface Logged {
  lines: (Buffer | undefined)[]
  erased: boolean
}

/**
 * Reads a directory without taking it from the server that may be writing there. The log comes first:
 * what it has no more by then is in the journals.
 */
export async function fileReader(directory: string): Promise<Reader> {
  const logged = await fromLog(join(directory, 'log'))
  const { threads } = logged
  const chats = join(directory, 'chats')

  /** Up to an end that is not whole; `isLogged` says whether the log has more than the seq. */
  async function* fromFile(folder: string, isLogged = (_seq: number) => true) {
    let from = 0
    let last: Kept | undefined
    for (let look = 0; ; look++) {
      let torn = false
      for await (const { bytes, offset, whole } of linesOf(
        join(chats, folder, journalName),
        from,
      )) {
        const kept = decode(bytes)
        torn = !kept && !whole
        if (torn) break
        from = offset + bytes.length + 1
        last = kept
        yield kept
      }
      const lacking = torn || (last && !endsTransition(last))
      if (!lacking || isLogged(last?.entry.seq ?? 0)) return
      // Somebody may be writing it, and is done in a moment.
      if (look < mostLooks) await sleep(pause)
      else {
        if (torn) yield undefined
        return
      }
    }
  }

  return {
    async *threadIds() {
      const folders = new Set(await readdir(chats).catch(unlessMissing))
      for (const [threadId, { lines, erased }] of threads) {
        if (lines.length > 0) yield threadId
        if (lines.length > 0 || erased) folders.delete(encodeName(threadId))
      }
      for (const folder of folders)
        yield decodeName(folder) ?? (await idIn(fromFile(folder), folder))
    },

    async *entries(threadId) {
      const { lines, erased } = threads.get(threadId) ?? { lines: [], erased: false }
      let last = 0
      const isLogged = (seq: number) =>
        lines.some((line) => ((line && decode(line)?.entry.seq) ?? seq + 1) > seq)
      if (!erased)
        for await (const kept of fromFile(encodeName(threadId), isLogged)) {
          last = kept?.entry.seq ?? last + 1
          yield kept
        }
      for (const line of lines) {
        const kept = line && decode(line)
        if (!kept || kept.entry.seq > last) yield kept
      }
    },

    residues: () => residuesIn(join(directory, 'erased'), logged.residues),

    async close() {},
  }
}

async function fromLog(directory: string) {
  const threads = new Map<string, Logged>()
  const residues = new Map<string, string>()
  for (const record of await peekLog(directory)) {
    if (record.kind === 'epoch' || record.kind === 'nameless') continue
    const { threadId } = record
    const known = threads.get(threadId) ?? { lines: [], erased: false }
    if (record.kind === 'erase') {
      threads.set(threadId, { lines: [], erased: true })
      if (record.residue) residues.set(record.residue.id, record.residue.text)
    } else {
      const lines = record.kind === 'transition' ? record.lines : [undefined]
      threads.set(threadId, { ...known, lines: [...known.lines, ...lines] })
    }
  }
  return { threads, residues }
}

/** Nothing also for a line whose sum is right and whose inside is not. */
function decode(line: Buffer): Kept | undefined {
  try {
    const kept = decodeEntry(line)
    return kept && typeof kept.entry.seq === 'number' ? kept : undefined
  } catch {
    return undefined
  }
}

/** The id of a thread whose folder cannot say all of it. */
async function idIn(entries: AsyncIterable<Kept | undefined>, folder: string): Promise<string> {
  for await (const kept of entries) if (kept) return kept.entry.threadId
  return folder
}

function unlessMissing(error: unknown): string[] {
  if (isMissing(error)) return []
  throw error
}
