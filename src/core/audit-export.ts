import { sha256 } from '../lib/canonical.ts'
import { mac } from '../lib/mac.ts'
import { type AuditKeys, linkedOf, linkOf, refOf, sealOf, threadKeys } from './audit.ts'
import { type Row, rowsOf } from './audit-residue.ts'
import { type Entry, type Known, read } from './entries.ts'
import type { Kept, Marks } from './store.ts'

/** What a person decided, or what was done because of it. */
export const isDecision = (kind: string): boolean =>
  /^(ask|effect|grant)\./.test(kind) || kind === 'governor.set'

/** Of a decision all, with a reading of it first; of anything else no more than its place in the chain. */
type Line = { row: Row; decision?: object; entry?: Entry; marks?: Marks }

/** Version 2 reads out the arguments of asks, answers and effects too; files of version 1 still verify. */
const version = 2

interface About {
  v: number
  thread: string
  ref: string
  exportedAt: number
  keyId: string
}

/** The decisions of a thread as lines of JSON, which prove themselves to whoever has the key. */
export async function* exportLines(
  keys: AuditKeys,
  threadId: string,
  entries: AsyncIterable<Kept>,
  exportedAt: number,
): AsyncGenerator<string> {
  const ref = refOf(threadId)
  const { keyId } = keys[0]
  const about: About = { v: version, thread: threadId, ref, exportedAt, keyId }
  const titles = new Map<string, string>()
  let sum = ''
  const said = (line: object) => {
    const text = JSON.stringify(line)
    sum = sha256(`${sum}\n${text}`)
    return text
  }
  yield said(about)
  for await (const { row, kept } of rowsOf(keys, ref, entries)) {
    const { entry, marks } = kept
    if (!isDecision(entry.kind)) yield said({ row } satisfies Line)
    else
      yield said({ decision: reading(entry, titles, version), row, entry, ...(marks && { marks }) })
  }
  yield JSON.stringify({ mac: proofOf(keys, about, sum) })
}

function proofOf(keys: AuditKeys, { ref, keyId }: About, sum: string): string {
  const key = threadKeys(keys, ref)(keyId)
  return key ? mac(key, `export\n${sum}`) : ''
}

/** Who, when, over which wire, what: so that nobody has to know our entries. */
function reading(stored: Entry, titles: Map<string, string>, v: number): object {
  const entry = read(stored)
  const { seq, at, kind, actor } = entry
  const who = {
    who: actor.id,
    as: actor.type,
    ...(actor.wire !== undefined && { wire: actor.wire }),
  }
  return {
    seq,
    at: new Date(at).toISOString(),
    kind,
    ...who,
    ...about(entry, titles),
    ...(v > 1 && argumentsIn(entry, titles)),
  }
}

function about(entry: Known, titles: Map<string, string>): object {
  switch (entry.kind) {
    case 'ask.raised': {
      const { askId, title, tool, digest, deadline } = entry.body.ask
      titles.set(askId, title)
      return { title, askId, tool, digest, deadline: new Date(deadline).toISOString() }
    }
    case 'ask.answered': {
      const { askId, state, reason, digest, outcome } = entry.body
      return { title: titles.get(askId), askId, state, reason, digest, outcome }
    }
    case 'effect.intended': {
      const { effectId, effect, name, digest, askId } = entry.body
      return { title: askId && titles.get(askId), effectId, effect, name, digest, askId }
    }
    case 'effect.done':
    case 'effect.failed':
    case 'effect.unknown': {
      const { effectId, effect, name } = entry.body
      return { effectId, effect, name }
    }
    default:
      return entry.body as object
  }
}

/** The arguments that were asked for, approved or run, and the grant that made an approval unnecessary. */
function argumentsIn(entry: Known, titles: Map<string, string>): object {
  switch (entry.kind) {
    case 'ask.raised':
      return { input: entry.body.ask.input }
    case 'ask.answered': {
      const { askId, card, input } = entry.body
      if (card) titles.set(askId, card.title) // the effect that follows is of these arguments
      return input === undefined ? {} : { edited_input: input }
    }
    case 'effect.intended': {
      const { effect, input, grantId } = entry.body
      return effect === 'tool' ? { input, grantId } : {}
    }
    default:
      return {}
  }
}

export interface ExportVerdict {
  ok: boolean
  thread: string
  decisions: number
  head: string | null
  /** The line that is not as it was written, from 1, and what is wrong. */
  line?: number
  why?: string
}

/** Of a file of such lines, without any store. */
export async function verifyExport(
  keys: AuditKeys,
  lines: AsyncIterable<string>,
): Promise<ExportVerdict> {
  let head: About | undefined
  let sum = ''
  let link: string | null = null
  let decisions = 0
  let number = 0
  let proven = false
  const titles = new Map<string, string>()
  const result = (why?: string): ExportVerdict => {
    const at = why === undefined ? {} : { line: number, why }
    return { ok: why === undefined, thread: head?.thread ?? '', decisions, head: link, ...at }
  }
  for await (const text of lines) {
    number++
    if (proven) return result('something follows the end')
    const line = parse(text)
    if (!line) return result('cannot be read')
    if (!head) {
      head = line as unknown as About
      if (head.ref !== refOf(String(head.thread))) return result('names another thread')
    } else if ('mac' in line) {
      proven = line.mac === proofOf(keys, head, sum)
      if (!proven) return result('the lines are not those that were exported')
      continue
    } else {
      const next = follow(keys, head.ref, line as unknown as Line, link)
      if (next === undefined) return result('is not what its link says')
      const { entry, decision } = line as unknown as Line
      if (entry && JSON.stringify(decision) !== JSON.stringify(reading(entry, titles, head.v)))
        return result('does not read as its entry does')
      if (entry) decisions++
      link = next
    }
    sum = sha256(`${sum}\n${text}`)
  }
  number++
  return result(proven ? undefined : 'the end is missing')
}

function follow(keys: AuditKeys, ref: string, line: Line, prev: string | null): string | undefined {
  const { row, entry, marks } = line
  if (!Array.isArray(row)) return undefined
  const [seq, keyId, kind, at, by, wire, , seal, over] = row
  const key = threadKeys(keys, ref)(keyId)
  if (!key) return undefined
  const link = linkOf(keyId, key, { prev, over, kind, at, by, wire, seal })
  if (!entry) return link
  const own = linkOf(keyId, key, linkedOf(entry, sealOf(key, entry, marks), prev, over))
  const whole = entry.seq === seq && sha256(entry.body) === entry.digest && entry.link === link
  return own === link && whole ? link : undefined
}

function parse(text: string): Record<string, unknown> | undefined {
  try {
    const line: unknown = JSON.parse(text)
    return typeof line === 'object' && line !== null ? (line as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}
