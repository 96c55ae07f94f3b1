import { mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { isRuntimeError, RuntimeError } from '../../core/errors.ts'
import { privateDirectory } from '../../lib/private.ts'
import type { Chats } from './chats.ts'
import { forEachOf, replaceFile, syncDirectory, type Tools } from './disk.ts'
import { decodeEntry } from './entry-line.ts'
import type { IndexFile } from './index-file.ts'
import { Journal, setAsideName } from './journal.ts'
import { decodeName, encodeName } from './names.ts'
import { type LogRecord, readLog } from './read-log.ts'
import type { Tables } from './tables.ts'

interface Parts {
  directory: string
  tools: Tools
  tables: Tables
  chats: Chats
  index: IndexFile
}

/** What the log says of one thread. */
interface Replayed {
  lines: Buffer[]
  erased: boolean
  /** Lines that cannot be read; the thread cannot be trusted beyond them. */
  damage: Buffer[]
}

/**
 * Brings the tables and journals to where the log ends. Only reading, except for unfinished ends
 * that are cut off where the log has them: to be killed here and start again changes nothing. Gives the last epoch, and the
 * runs whose entries are in their journals, but perhaps not yet in the files that people look at.
 */
export async function recover(parts: Parts, segments: readonly number[]): Promise<Recovered> {
  const folders = readdir(join(parts.directory, 'chats')) // while the index is read
  await parts.index.load(parts.tables)
  const lacking = await adoptUnknown(await folders, parts)
  const threads = new Map<string, Replayed>()
  let epoch = 0
  for (const record of await readLog(join(parts.directory, 'log'), segments, parts.tools)) {
    if (record.kind === 'nameless') throw unreadable(record.where)
    else if (record.kind === 'epoch') epoch = Math.max(epoch, record.epoch)
    else replay(record, threads, parts)
  }
  const moved = new Map<string, Set<string>>()
  await forEachOf(threads, async ([threadId, thread]) => {
    const runIds = await restore(threadId, thread, parts)
    if (runIds.size > 0) moved.set(threadId, runIds)
  })
  // What the log knows nothing of will not get whole any more. Known at once, so that nobody works on it.
  for (const threadId of lacking)
    if (!threads.has(threadId)) await parts.chats.get(threadId).catch(unlessDamaged)
  return { epoch, moved }
}

interface Recovered {
  epoch: number
  moved: Map<string, Set<string>>
}

function replay(
  record: Exclude<LogRecord, { kind: 'epoch' | 'nameless' }>,
  threads: Map<string, Replayed>,
  { tables, chats, tools }: Parts,
) {
  const { threadId } = record
  const thread = threads.get(threadId) ?? { lines: [], erased: false, damage: [] }
  threads.set(threadId, thread)
  if (record.kind === 'damaged') {
    thread.damage.push(record.bytes)
    tools.log.error({ threadId }, `the commit log is damaged at ${record.where}`)
  } else if (record.kind === 'erase') {
    tables.remove(threadId)
    if (record.residue) chats.residues.add(record.residue)
    threads.set(threadId, { lines: [], erased: true, damage: [] })
  } else {
    for (const line of record.lines) {
      const marks = decodeEntry(line)?.marks
      if (marks) tables.apply(threadId, marks)
      thread.lines.push(line)
    }
  }
}

/** Gives a journal the entries that only the log has; the runs of those it had already. */
async function restore(threadId: string, thread: Replayed, parts: Parts): Promise<Set<string>> {
  const { chats } = parts
  const had = new Set<string>()
  try {
    if (thread.erased) {
      chats.forget(threadId) // whatever was wrong with it
      chats.erased.add(threadId)
    }
    if (thread.erased && thread.lines.length === 0 && thread.damage.length === 0) return had
    const journal = thread.erased ? chats.create(threadId) : await chats.reopen(threadId)
    for (const line of thread.lines) {
      const read = decodeEntry(line)
      if (!read || read.entry.seq > journal.lastSeq + 1) throw new RuntimeError('thread_damaged')
      const { runId } = read.entry
      if (read.entry.seq <= journal.lastSeq) {
        if (runId !== undefined) had.add(runId)
        continue
      }
      journal.push(line, read.marks, runId)
      chats.waiting.add(journal)
    }
    if (journal.waiting) await journal.cut()
    journal.assertWhole()
    if (thread.damage.length > 0) throw new RuntimeError('thread_damaged')
  } catch (error) {
    if (!isRuntimeError(error, 'thread_damaged')) throw error
    await setAside(threadId, thread, parts)
    chats.close(threadId, error)
  }
  return had
}

/** The log will be dropped; what it has of a damaged chat is kept beside it for whoever repairs it. */
async function setAside(threadId: string, thread: Replayed, { chats, tools }: Parts) {
  const { lines, damage, erased } = thread
  const folder = chats.folderOf(threadId)
  // Not later, when this file would go too.
  if (erased) await rm(folder, { recursive: true, force: true })
  chats.erased.delete(threadId)
  await mkdir(folder, { recursive: true, mode: privateDirectory })
  const content = [...damage, ...lines].flatMap((line) => [line, Buffer.from('\n')])
  await replaceFile(join(folder, setAsideName), content, tools.disk)
  await syncDirectory(join(folder, '..'), tools.disk)
}

/** Chats on disk that the index does not have: all of them, when it is missing or damaged. Those that lack their end. */
async function adoptUnknown(folders: string[], parts: Parts): Promise<string[]> {
  const { directory, tables, chats, tools } = parts
  const chatsDirectory = join(directory, 'chats')
  const lacking: string[] = []
  if (folders.length === tables.rows.size) return lacking
  const known = new Set(Array.from(tables.rows.keys(), encodeName))
  await forEachOf(folders, async (folder) => {
    if (known.has(folder)) return
    let threadId = decodeName(folder)
    try {
      // Not through `chats`: most of them will not be needed again soon.
      const journal = new Journal(threadId ?? folder, join(chatsDirectory, folder), tools)
      await journal.load((entry, marks) => {
        threadId = entry.threadId
        tables.apply(entry.threadId, marks)
      })
      if (!journal.isWhole) lacking.push(threadId ?? folder)
    } catch (error) {
      const isDamage = isRuntimeError(error, 'thread_damaged')
      if (isDamage && threadId !== undefined) chats.close(threadId, error)
      else if (isDamage) tools.log.error({ folder }, 'a chat cannot be read and has lost its id')
      else if ((error as NodeJS.ErrnoException).code !== 'ENOTDIR') throw error // not a chat
    }
  })
  return lacking
}

function unlessDamaged(error: unknown): void {
  if (!isRuntimeError(error, 'thread_damaged')) throw error
}

function unreadable(where: string) {
  return new Error(
    `The commit log is damaged at ${where}, and the line does not say which chat it belongs to. ` +
      'Restore the directory from a backup, or remove that line to go on without what it said.',
  )
}
