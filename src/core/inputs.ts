import { atOnce } from '../lib/at-once.ts'
import type { Bench } from './effects.ts'
import { callDigest } from './policy.ts'
import type { AskRecord, EffectRecord } from './state.ts'
import { type ParsedInput, readInput, type Tool } from './tool.ts'

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
  return parseValue(value, tool, bench)
}

function parseValue(
  value: unknown,
  tool: Tool,
  { report }: Bench,
): ParsedInput | { problem: string } {
  const read = readInput(tool, value)
  if ('input' in read) return read
  if ('thrown' in read) report(read.thrown, { tool: tool.name }, 'the schema of a tool failed')
  const issues = read.issues.slice(0, 5)
  const list = issues.map(({ path, message }) => `${path.join('.') || 'input'}: ${message}`)
  return { problem: `The input of ${tool.name} is not valid. ${list.join('; ')}` }
}

export interface SettledInput extends ParsedInput {
  /** Of the tool, its schema, `shown` and the precondition (I11). */
  digest: string
}

/**
 * Returns the input that was approved or begun, ready to run. If JSON represents the parsed input, exactly the
 * stored value runs, even if the schema would now return another one (a default of `now`). If it does not, the
 * raw input was stored and is parsed again. If the stored input does not belong to this tool and schema any more,
 * returns the model's input with its own digest, which the approval does not match.
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
      const parsed = parseValue(input, tool, bench)
      return 'problem' in parsed ? parsed : { input: parsed.input, shown: input, raw: true, digest }
    }
    // Older versions stored the parsed input also where JSON cannot represent it.
    const lossy = kept.raw === undefined && read.raw
    if (!lossy) return { input, shown: input, digest }
  }
  // Approved in an older version, whose digest was of the parsed input.
  const older = read.raw && atOnce(() => digestOf(read.input)) // of a BigInt there is none
  if (!edited && older === digest) return { ...read, digest }
  return fresh
}
