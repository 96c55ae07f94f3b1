import { ConfigError } from '../config.ts'
import { type AuditKeys, refOf } from '../core/audit.ts'
import { verifyExport } from '../core/audit-export.ts'
import { HeadList, readHead } from '../core/audit-heads.ts'
import { linksOfResidue, refOfResidue, verifyResidue } from '../core/audit-residue.ts'
import { faults, type Problem, type Verdict, Verifier, verifyThread } from '../core/audit-verify.ts'
import type { Reader } from '../core/store.ts'
import { findAudit } from '../open-audit.ts'
import { refuseEmpty } from '../open-reader.ts'
import { type Command, counted, words } from './command.ts'
import { linesIn, withReader } from './reading.ts'

interface Found extends Verdict {
  thread?: string
  ref: string
}

const options = {
  thread: { type: 'string' },
  heads: { type: 'string' },
  'require-chain': { type: 'boolean', default: false },
  json: { type: 'boolean', default: false },
} as const

/** `handrail audit verify [FILE] [--thread ID] [--heads FILE] [--require-chain] [--json]` */
export async function verify(command: Command): Promise<number> {
  const { values, positionals } = words(command, options)
  const [file] = positionals
  if (file === undefined) refuseEmpty(command.config)
  const keys = await findAudit(command.config)
  if (file !== undefined) return await verifyFile(command, keys, file)

  const heads = new HeadList()
  let strange = 0
  if (values.heads !== undefined)
    for await (const line of linesIn(values.heads)) {
      const head = readHead(keys, line)
      if (head) heads.add(head)
      else strange++
    }
  const counts = { ok: 0, unchained: 0, erased: 0, broken: 0 }
  let entries = 0
  let done = 0
  await withReader(command.config, async (reader) => {
    for await (const found of verdicts(reader, keys, heads, values.thread)) {
      const missed = values['require-chain'] && found.verdict === 'unchained'
      const verdict = missed ? 'broken' : found.verdict
      counts[verdict]++
      entries += found.seq
      if (values.json) command.say(JSON.stringify({ ...found, verdict }))
      else if (verdict === 'broken' || values.thread !== undefined)
        for (const line of linesOf({ ...found, verdict })) command.say(line)
      command.progress(counted(++done, 'thread'))
    }
  })
  // Of a thread that was erased there is a residue, and of one that disappeared there may be heads.
  if (values.thread !== undefined && totalOf(counts) === 0)
    throw new ConfigError(`There is no thread ${values.thread}.`)
  if (values.json) command.say(JSON.stringify({ summary: { ...counts, entries, strange } }))
  else {
    const parts = Object.entries(counts).map(([name, n]) => `${n.toLocaleString('en')} ${name}`)
    command.say(`${parts.join(', ')}; ${entries.toLocaleString('en')} entries.`)
    if (strange > 0) command.say(`${values.heads}: ${strange} lines are not heads of ours.`)
  }
  return counts.broken > 0 || strange > 0 ? 1 : 0
}

const totalOf = (counts: Record<Verdict['verdict'], number>): number =>
  Object.values(counts).reduce((sum, n) => sum + n, 0)

/** Residues first: what they have of the heads, a later thread of the same id need not have. */
async function* verdicts(
  reader: Reader,
  keys: AuditKeys,
  heads: HeadList,
  only: string | undefined,
): AsyncGenerator<Found> {
  for await (const residue of reader.residues()) {
    const ref = refOfResidue(residue)
    if (only !== undefined && ref !== refOf(only)) continue
    heads.found(ref, linksOfResidue(keys, residue))
    yield { ref, ...verifyResidue(keys, residue) }
  }
  for await (const thread of only === undefined ? reader.threadIds() : [only]) {
    const ref = refOf(thread)
    const verifier = new Verifier(keys, thread, heads.of(ref))
    const verdict = await verifyThread(reader.entries(thread), verifier)
    if (verdict.seq === 0 && heads.of(ref).size === 0) continue // not there, or erased since it was listed
    heads.drop(ref)
    yield { thread, ref, ...verdict }
  }
  for (const { ref, seq } of heads.rest()) {
    if (only !== undefined) continue
    const problems: Problem[] = [{ seq: 1, to: seq, fault: 'truncated' }]
    yield { ref, verdict: 'broken', seq: 0, since: null, head: null, problems }
  }
}

function* linesOf({ thread, ref, verdict, seq, since, problems }: Found): Generator<string> {
  const name = thread ?? ref
  if (verdict === 'unchained') yield `${name}: unchained, ${seq} entries`
  else if (verdict !== 'broken') {
    const from = since !== null && since > 1 ? `, unchained before ${since}` : ''
    yield `${name}: ${verdict}, ${seq} entries${from}`
  } else if (problems.length === 0) yield `${name}: broken: no entry has a link`
  for (const { seq, to, fault } of problems)
    yield `${name}: broken at ${to > seq ? `${seq} to ${to}` : seq}: ${faults[fault]}`
}

async function verifyFile({ say }: Command, keys: AuditKeys, file: string): Promise<number> {
  const { ok, thread, decisions, head, line, why } = await verifyExport(keys, linesIn(file))
  if (ok) say(`${thread}: ok, ${decisions} decisions up to ${head}`)
  else say(`${thread || file}: broken at line ${line}: ${why}`)
  return ok ? 0 : 1
}
