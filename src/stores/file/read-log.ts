import { open, readdir, readFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Residue } from '../../core/store.ts'
import { isMissing, syncDirectory, type Tools } from './disk.ts'
import { unframe } from './lines.ts'
import { segmentPath } from './log.ts'

export type LogRecord =
  | { kind: 'epoch'; epoch: number }
  | { kind: 'erase'; threadId: string; residue?: Residue }
  | { kind: 'transition'; threadId: string; lines: Buffer[] }
  | { kind: 'damaged'; threadId: string; bytes: Buffer; where: string }
  | { kind: 'nameless'; where: string }

/** The numbers of the segments, oldest first. */
export async function segmentsOf(directory: string): Promise<number[]> {
  const names = await readdir(directory)
  const numbers = names.flatMap((name) => /^(\d+)\.ndjson$/.exec(name)?.[1] ?? [])
  return numbers.map(Number).sort((a, b) => a - b)
}

/** All that the log says. What a crash left half written is cut off first. */
export async function readLog(
  directory: string,
  segments: readonly number[],
  tools: Tools,
): Promise<LogRecord[]> {
  const paths = segments.map((number) => segmentPath(directory, number))
  const contents: Piece[][] = []
  for (const path of paths) contents.push(piecesOf(await readFile(path)))
  // A segment without a first line was being made when the process died: the one before is the last.
  const last = contents.findLastIndex((pieces) => pieces[0]?.at !== undefined)
  if (last !== -1) contents[last] = await settle(paths[last]!, contents[last]!, tools)
  return contents.slice(0, last + 1).flatMap((pieces, n) => recordsOf(pieces, paths[n]!))
}

/** The same of a log that somebody may be writing: nothing is cut, and an end that is not whole is left out. */
export async function peekLog(directory: string): Promise<LogRecord[]> {
  const records: LogRecord[] = []
  for (const number of await segmentsOf(directory).catch(none)) {
    const path = segmentPath(directory, number)
    const content = await readFile(path).catch((error) => {
      if (isMissing(error)) return Buffer.alloc(0) // its contents are in the journals by now
      throw error
    })
    const pieces = piecesOf(content)
    records.push(...recordsOf(pieces.slice(0, tornFrom(pieces)), path))
  }
  return records
}

function none(error: unknown): number[] {
  if (isMissing(error)) return []
  throw error
}

/** What a killed process wrote may be in no more than the system's memory: it is ours from here on. */
async function settle(path: string, pieces: Piece[], { disk, log }: Tools): Promise<Piece[]> {
  const torn = tornFrom(pieces)
  const file = await open(path, 'r+')
  try {
    if (torn !== undefined) {
      log.info({ path }, 'cut the unfinished end of the commit log')
      await file.truncate(pieces[torn]!.offset)
    }
    await disk.sync(file, path)
  } finally {
    await file.close()
  }
  await syncDirectory(dirname(path), disk)
  return pieces.slice(0, torn)
}

function recordsOf(pieces: readonly Piece[], path: string): LogRecord[] {
  return pieces.map(({ record, bytes }, n) => {
    if (record) return record
    const where = `line ${n + 1} of ${path}`
    const threadId = nameIn(bytes)
    if (threadId === undefined) return { kind: 'nameless', where }
    return { kind: 'damaged', threadId, bytes, where }
  })
}

interface Piece {
  bytes: Buffer
  offset: number
  at: [batch: number, n: number, length: number] | undefined
  record: LogRecord | undefined
}

function piecesOf(content: Buffer): Piece[] {
  const pieces: Piece[] = []
  for (let from = 0; from < content.length; ) {
    const newline = content.indexOf(10, from)
    const to = newline === -1 ? content.length : newline
    const bytes = content.subarray(from, to)
    const payload = newline === -1 ? undefined : unframe(bytes)
    pieces.push({ bytes, offset: from, ...(payload ? parse(payload) : unreadable) })
    from = to + 1
  }
  return pieces
}

const unreadable = { at: undefined, record: undefined }
const entries = ',"entries":['

function parse(payload: Buffer): Pick<Piece, 'at' | 'record'> {
  const split = payload.indexOf(entries)
  const head = JSON.parse(
    split === -1 ? payload.toString() : `${payload.toString('utf8', 0, split)}}`,
  )
  const { at, epoch, erase, residue, thread, sizes } = head
  if (epoch !== undefined) return { at, record: { kind: 'epoch', epoch } }
  if (erase !== undefined)
    return { at, record: { kind: 'erase', threadId: erase, ...(residue && { residue }) } }
  let from = split + entries.length
  const lines = (sizes as number[]).map((size) => {
    const line = payload.subarray(from, from + size)
    from += size + 1
    return line
  })
  return { at, record: { kind: 'transition', threadId: thread, lines } }
}

/**
 * Where an unfinished last batch begins to be unreadable. A loss of power may keep a later page and
 * lose an earlier one, so good lines may follow: but only of that same batch, since the next one
 * would have been written after this one was synced. Anything else is damage to what was durable.
 */
function tornFrom(pieces: readonly Piece[]): number | undefined {
  const bad = pieces.findIndex((piece) => !piece.at)
  if (bad === -1) return undefined
  const [last, n, length] = pieces[bad - 1]?.at ?? [-1, 0, 1]
  const batch = n === length - 1 ? last + 1 : last
  const after = pieces.slice(bad).flatMap((piece) => (piece.at ? [piece.at] : []))
  return after.every(([other, place]) => other === batch && place > 0) ? bad : undefined
}

/** The thread that a damaged line belongs to, if its record and its first entry agree on it. */
function nameIn(bytes: Buffer): string | undefined {
  const text = bytes.toString()
  const outer = /"thread":("(?:[^"\\]|\\.)*")/.exec(text)?.[1]
  const inner = /"threadId":("(?:[^"\\]|\\.)*")/.exec(text)?.[1]
  if (outer === undefined || outer !== inner) return undefined
  try {
    return JSON.parse(outer) as string
  } catch {
    return undefined
  }
}
