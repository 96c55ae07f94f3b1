import type { Bench } from './effects.ts'
import { callDigest } from './policy.ts'
import type { AskRecord, EffectRecord } from './state.ts'
import { readInput, type Tool } from './tool.ts'

/** What a model wrote, as the tool takes it, or what to tell the model. */
export function parseInput(
  text: string,
  tool: Tool,
  { report }: Bench,
): { input: unknown } | { problem: string } {
  let value: unknown
  try {
    value = JSON.parse(text === '' ? '{}' : text)
  } catch {
    return { problem: `The input of ${tool.name} is not valid JSON. Send one JSON object.` }
  }
  const read = readInput(tool, value)
  if ('input' in read) return read
  if ('thrown' in read) report(read.thrown, { tool: tool.name }, 'the schema of a tool failed')
  const issues = read.issues.slice(0, 5)
  const list = issues.map(({ path, message }) => `${path.join('.') || 'input'}: ${message}`)
  return { problem: `The input of ${tool.name} is not valid. ${list.join('; ')}` }
}

/**
 * What was approved, or begun, is what runs, also where a schema reads the same words otherwise each time: a
 * default may be the time of day. Read anew where that is the same: it may hold what JSON does not, as dates.
 */
export function settledInput(
  read: unknown,
  tool: Tool,
  approval: AskRecord | undefined,
  record: EffectRecord | undefined,
): unknown {
  const { ask, answer } = approval ?? {}
  const edited = answer?.input
  const kept = ask
    ? { input: edited ?? ask.input, digest: answer?.digest ?? ask.digest }
    : record?.intent
  if (kept?.digest === undefined || callDigest(tool, read) === kept.digest) return edited ?? read
  // Of another tool than it was shown for, it is nothing that was approved.
  return callDigest(tool, kept.input) === kept.digest ? kept.input : (edited ?? read)
}
