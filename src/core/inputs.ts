import { atOnce } from '../lib/at-once.ts'
import { isJson } from '../lib/json.ts'
import type { Bench } from './effects.ts'
import { callDigest } from './policy.ts'
import type { AskRecord, EffectRecord } from './state.ts'
import {
  type InputIssue,
  isStable,
  type ParsedInput,
  parseOnce,
  readInput,
  type Tool,
} from './tool.ts'

/** What a model wrote, as the tool takes it, or what to tell the model. */
export function parseInput(
  text: string,
  tool: Tool,
  bench: Bench,
): ParsedInput | { problem: string } {
  let value: unknown
  try {
    value = JSON.parse(text === '' ? '{}' : text)
  } catch {
    return { problem: `The input of ${tool.name} is not valid JSON. Send one JSON object.` }
  }
  return parsedBy(readInput, value, tool, bench)
}

function parsedBy<Parsed extends object>(
  parse: (tool: Tool, value: unknown) => Parsed | { issues: InputIssue[]; thrown?: unknown },
  value: unknown,
  tool: Tool,
  { report }: Bench,
): Parsed | { problem: string } {
  const read = parse(tool, value)
  if (!('issues' in read)) return read
  if ('thrown' in read) report(read.thrown, { tool: tool.name }, 'the schema of a tool failed')
  const issues = read.issues.slice(0, 5)
  const list = issues.map(({ path, message }) => `${path.join('.') || 'input'}: ${message}`)
  return { problem: `The input of ${tool.name} is not valid. ${list.join('; ')}` }
}

export interface SettledInput extends ParsedInput {
  /** Of the tool, its schema, `shown` and the precondition (I11). */
  digest: string
  /** An edit that an older version may have transformed twice. It must not run. */
  stale?: true
}

/**
 * Returns the input that was approved or begun, ready to run. If the parsed input was stored, exactly this value
 * runs, even if the schema would now return another one (a default of `now`). If the raw input was stored, it is
 * parsed again; see `ParsedInput`. If the stored input does not belong to this tool and schema any more, returns the
 * model's input with its own digest, which the approval does not match.
 */
export function settledInput(
  read: ParsedInput,
  tool: Tool,
  { approval, record }: { approval: AskRecord | undefined; record: EffectRecord | undefined },
  bench: Bench,
): SettledInput | { problem: string } {
  const { ask, answer } = approval ?? {}
  const digestOf = (input: unknown, raw?: boolean) =>
    callDigest(tool, input, { raw, precondition: ask?.precondition })
  const fresh = { ...read, digest: digestOf(read.shown, read.raw) }
  const edited = answer?.input !== undefined
  const kept = edited ? answer : (ask ?? record?.intent)
  const digest = answer?.digest ?? kept?.digest
  if (kept === undefined || digest === undefined || digest === fresh.digest) return fresh
  if (digestOf(kept.input, kept.raw) === digest) {
    const { input } = kept
    if (kept.raw) {
      const parsed = parsedBy(parseOnce, input, tool, bench)
      return 'problem' in parsed ? parsed : { input: parsed.input, shown: input, raw: true, digest }
    }
    // Older versions stored the parsed input also where JSON cannot represent it.
    const lossy = kept.raw === undefined && read.raw && !isJson(read.input, read.shown)
    if (!lossy) {
      // Older versions showed and stored the input after every transform, and applied the transform to edits of it.
      const edits = edited && digest !== ask?.digest && !ask?.raw
      const stale = edits && !isStable(tool, input)
      return { input, shown: input, digest, ...(stale && { stale }) }
    }
  }
  // Approved in an older version, whose digest was of the parsed input.
  const older = read.raw && atOnce(() => digestOf(read.input)) // of a BigInt there is none
  if (!edited && older === digest) return { ...read, digest }
  return fresh
}
