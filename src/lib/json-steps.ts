import { setImmediate } from 'node:timers/promises'
import { isLarger } from './size.ts'

/** Values up to this size are serialized at once. */
const smallSize = { values: 10_000, characters: 200_000 }
/** Characters of one step, and texts that are put together for it. */
const stepLength = 200_000
const stepTexts = 4_000
/** Parts up to this size are not taken apart. */
const partSize = { values: 200, characters: 20_000 }
/** Levels that are taken apart; what is deeper belongs to one message. */
const maxDepth = 6

/** Whether serializing a JSON value at once would delay other requests. */
export const isLong = (value: unknown): boolean => isLarger(value, smallSize)

/**
 * `JSON.stringify` in steps: the texts, joined, are the JSON of the value, indented by `indent`. A string shorter than a step
 * is never divided between two steps.
 */
export function* jsonSteps(value: unknown, indent = 0): Generator<string, void, undefined> {
  let batch = ''
  let count = 0
  for (const text of texts(value, maxDepth, ' '.repeat(indent), '')) {
    batch += text
    if (batch.length < stepLength && ++count < stepTexts) continue
    yield batch
    batch = ''
    count = 0
  }
  if (batch !== '') yield batch
}

/** The steps, with other requests running before each. */
export async function* unhurried(steps: Iterable<string>): AsyncGenerator<string, void, undefined> {
  for (const step of steps) {
    await setImmediate()
    yield step
  }
}

/** The text as it stands between the quotes of a JSON string. */
export const escaped = (text: string): string => JSON.stringify(text).slice(1, -1)

/** A text in parts of about `length` characters. Does not divide a surrogate pair. */
export function* slices(text: string, length: number): Generator<string, void, undefined> {
  for (let at = 0; at < text.length; ) {
    const end = at + length
    const half = /[\ud800-\udbff]/.test(text.charAt(end - 1)) // of a pair
    yield text.slice(at, half ? end + 1 : end)
    at = half ? end + 1 : end
  }
}

function* texts(
  value: unknown,
  depth: number,
  indent: string,
  line: string,
): Generator<string, void, undefined> {
  if (typeof value === 'string' && value.length > stepLength) {
    yield '"'
    for (const part of slices(value, stepLength)) yield escaped(part)
    yield '"'
    return
  }
  if (depth === 0 || !isContainer(value) || !isLarger(value, partSize)) {
    const text = JSON.stringify(value, null, indent) ?? 'null'
    yield indent === '' ? text : text.replaceAll('\n', `\n${line}`)
    return
  }
  const list = Array.isArray(value)
  const inner = line + indent
  const [start, end, colon] = indent === '' ? ['', '', ':'] : [`\n${inner}`, `\n${line}`, ': ']
  yield list ? '[' : '{'
  let comma = ''
  for (const [name, part] of list ? value.entries() : Object.entries(value)) {
    if (!list && (part === undefined || typeof part === 'function')) continue
    yield list ? comma + start : `${comma}${start}${JSON.stringify(name)}${colon}`
    yield* texts(part, depth - 1, indent, inner)
    comma = ','
  }
  yield (comma === '' ? '' : end) + (list ? ']' : '}')
}

const isContainer = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !('toJSON' in value)
