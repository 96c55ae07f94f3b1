import { chainFact } from '../../core/audit.ts'
import type { Entry } from '../../core/entries.ts'
import type { Kept, Marks, NewEntry } from '../../core/store.ts'
import { isSealed, seal, sealLength } from './lines.ts'

/** An entry as it was given, read once: later changes by the caller do not reach it. */
export interface Prepared {
  envelope: Omit<NewEntry, 'body' | 'marks'>
  marks: Marks | undefined
  body: string
  /** Envelope and marks, as they are in the line. */
  head: string
}

export function prepare({ body, marks, ...given }: NewEntry): Prepared {
  const envelope = { ...given, actor: { ...given.actor } }
  const marked = marks ? `,"marks":${JSON.stringify(marks)}` : ''
  const head = JSON.stringify(envelope).slice(1, -1) + marked
  return { envelope, marks: marks && copyOf(marks), body, head }
}

function copyOf({ thread, ask, facts, timers }: Marks): Marks {
  const copy: Marks = {}
  if (thread) copy.thread = { ...thread }
  if (ask) copy.ask = { ...ask, ...(ask.audience && { audience: [...ask.audience] }) }
  if (facts) copy.facts = Object.assign(Object.create(null), facts)
  if (timers) copy.timers = Object.assign(Object.create(null), timers)
  return copy
}

const keyLength = '"body":'.length

/**
 * One line of a journal, without its newline:
 * `{"crc":"...","size":<bytes of the body>,"seq":1,...,"marks":{...},"body":<the body's own text>}`.
 * The size is what lets the body be cut out again untouched.
 */
export function encodeEntry({ head, body }: Prepared, seq: number): Buffer {
  // A line break or half a character cannot stand in a line as it is: such a body is quoted.
  const quoted = body.includes('\n') || !body.isWellFormed()
  const text = quoted ? JSON.stringify(body) : body
  const place = `"size":${Buffer.byteLength(text)},"seq":${seq}`
  return seal(`${place},${head},"${quoted ? 'text' : 'body'}":${text}}`)
}

/** The entry of a line, or nothing if the line is not as it was written. */
export function decodeEntry(line: Buffer): Kept | undefined {
  if (!isSealed(line)) return undefined
  const comma = line.indexOf(',', sealLength)
  const size = Number(line.toString('latin1', sealLength + '"size":'.length, comma))
  const start = line.length - 1 - size
  const head = line.toString('utf8', comma + 1, start - keyLength - 1)
  const text = line.toString('utf8', start, line.length - 1)
  const quoted = line.toString('latin1', start - keyLength, start) === '"text":'
  const { marks, ...envelope } = JSON.parse(`{${head}}`)
  const body = quoted ? (JSON.parse(text) as string) : text
  return { entry: { ...envelope, body } as Entry, ...(marks && { marks: marks as Marks }) }
}

/** Whether a transition may end with it. Of entries with links the last one says so; others do not tell. */
export const endsTransition = ({ entry, marks }: Kept): boolean =>
  entry.link === undefined || marks?.facts?.[chainFact] !== undefined
