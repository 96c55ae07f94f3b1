import { createRequire } from 'node:module'
import type { Ajv, ErrorObject, Options } from 'ajv'
import { sha256 } from './canonical.ts'
import { type Budget, boundSteps, TooManySteps } from './json-schema-steps.ts'
import { untrustedPatterns } from './linear.ts'
import { isLarger } from './size.ts'

/** Characters of a schema as JSON. */
const maxSchemaLength = 200_000
/** Subschemas, keywords and list items of a schema: each takes up to 0.1 ms to compile. */
const maxKeywords = 500
/** Steps of one check: about 15 ms. */
const maxSteps = 250_000
/** Values of the schema times values of the input. */
const maxComparisons = 300_000
/** Bytes that compiled schemas may take, and that each takes besides its text and for each of its values. */
const maxCached = 20_000_000
const compiledBytes = 200_000
const valueBytes = 100

/**
 * Returns the problems of a value, each with the path to it; none if the value fits. Subtracts the steps that it takes
 * from `budget.steps`; tests pass a budget to count them.
 */
export type SchemaCheck = (value: unknown, budget?: Budget) => { path: string[]; message: string }[]

export interface SchemaOptions {
  /** Treatment of a pattern that the linear engine cannot run. `refuse` throws, `skip` checks the rest. */
  unsupportedPatterns: 'refuse' | 'skip'
}

/** A schema that would take too long to compile. The message names the limit. */
export class SchemaTooComplex extends Error {}

const compiled = new Map<string, { check: SchemaCheck; bytes: number }>()
let cachedBytes = 0

/**
 * Compiles a JSON Schema that a client, a model, an MCP server or a remote agent wrote. Patterns run in
 * linear time and formats are not checked. Every keyword takes steps, in proportion to the values and characters that
 * it reads; a value that would take too many of them does not fit. Throws for a schema that cannot be read or is too long, and `SchemaTooComplex` for one
 * that would take too long to compile. The schemas used last are kept compiled.
 */
export function compileSchema(json: object, options: SchemaOptions): SchemaCheck {
  const text = JSON.stringify(json)
  if (text.length > maxSchemaLength)
    throw new Error(`its schema has more than ${maxSchemaLength} characters`)
  if (countKeywords(json) > maxKeywords)
    throw new SchemaTooComplex(`its schema has more than ${maxKeywords} keywords and subschemas`)
  const key = sha256(options.unsupportedPatterns + text)
  const known = compiled.get(key)
  const bytes = () => compiledBytes + 4 * text.length + valueBytes * countValues(json)
  const kept = known ?? { check: compile(json, options), bytes: bytes() }
  compiled.delete(key)
  compiled.set(key, kept) // the least recently used is first
  if (!known) cachedBytes += kept.bytes
  for (const [oldest, { bytes }] of compiled) {
    if (cachedBytes <= maxCached) break
    compiled.delete(oldest)
    cachedBytes -= bytes
  }
  return kept.check
}

function compile(json: object, { unsupportedPatterns }: SchemaOptions): SchemaCheck {
  let charge = (_steps: number) => {}
  const patterns = untrustedPatterns((steps) => charge(steps))
  const read = (source: string) => {
    let search: (text: string) => boolean | undefined = () => true
    try {
      search = patterns.read(source)
    } catch (error) {
      if (unsupportedPatterns === 'refuse') throw error
    }
    const test = (text: string) => {
      const found = search(text)
      // Neither true nor false is safe: below `not`, "not found" would accept the value.
      if (found === undefined) throw new TooManySteps()
      return found
    }
    return { test, toString: () => source }
  }
  // The code is for checks that are written to a file; ours are not.
  const regExp = Object.assign(read, { code: 'linearPattern' })
  // One instance for each schema: different schemas may use the same `$id`.
  const ajv = newAjv(json, { ...options, code: { regExp, optimize: false } })
  const writer = createRequire(import.meta.url)('ajv') as typeof import('ajv')
  const bounds = boundSteps(ajv, writer, maxIssues)
  charge = bounds.takeOfPattern
  const check = ajv.compile(json)
  const maxValues = Math.floor(maxComparisons / countValues(json))
  return (value, budget = { steps: maxSteps }) => {
    if (isLarger(value, { values: maxValues, characters: Number.POSITIVE_INFINITY })) return tooLong
    patterns.restart()
    bounds.start(budget)
    try {
      return check(value) ? [] : (check.errors ?? []).slice(0, maxIssues).map(issueOf)
    } catch (error) {
      if (error instanceof TooManySteps || error instanceof RangeError) return tooLong
      throw error
    } finally {
      bounds.end()
    }
  }
}

const options = {
  ...{ strict: false, validateFormats: false, validateSchema: false },
  ...{ allErrors: true, inlineRefs: false },
}

/** Characters of the path of a problem. A problem with a longer path is listed without it. */
const maxPathLength = 2_000
/** Problems that are listed. A check ends soon after it has found as many. */
const maxIssues = 100
const tooLong = [{ path: [], message: 'takes too long to check against its schema' }]

const isContainer = (value: unknown): value is object => typeof value === 'object' && value !== null
/** Keywords that take no time to compile. A `$ref` may point into them, so objects in them count. */
const annotations = new Set(['title', 'description', 'default', 'examples', '$comment', 'enum'])
/** Keywords that take longer: a program or a function each. */
const costly = new Set(['pattern', '$ref', '$dynamicRef', '$recursiveRef'])
/** Objects with lists of names under every key, `enum` too: all the names are in the compiled code. */
const dependencies = new Set(['dependentRequired', 'dependencies'])

/** Counts what Ajv makes code for: subschemas, keywords and list items. Ends above `maxKeywords`. */
function countKeywords(json: object): number {
  const left: [name: string, part: object][] = [['', json]]
  let count = 1
  for (let part = left.pop(); part && count <= maxKeywords; part = left.pop()) {
    const [name, value] = part
    const isFree = annotations.has(name) && Array.isArray(value)
    for (const [key, inner] of Object.entries(value)) {
      if (isContainer(inner)) left.push([dependencies.has(name) ? '' : key, inner])
      if (isContainer(inner) || !(isFree || annotations.has(key))) count++
      if (name === 'patternProperties' || costly.has(key)) count += 3
    }
  }
  return count
}

function countValues(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 1
  let count = 1
  for (const part of Object.values(value)) count += countValues(part)
  return count
}

/** Ajv is loaded with the first schema. */
function newAjv(json: object, options: Options): Ajv {
  const load = createRequire(import.meta.url)
  if (isOld(json)) {
    const { Ajv } = load('ajv') as typeof import('ajv')
    return new Ajv(options)
  }
  const { Ajv2020 } = load('ajv/dist/2020.js') as typeof import('ajv/dist/2020.js')
  const ajv = new Ajv2020(options)
  // Without these keywords nothing reads which properties and items were evaluated.
  ajv.opts.unevaluated = JSON.stringify(json).includes('"unevaluated')
  return ajv
}

const isOld = ({ $schema }: { $schema?: unknown }): boolean =>
  typeof $schema === 'string' && /draft-0[4-7]/.test($schema)

function issueOf({ instancePath, message = 'is not valid', params }: ErrorObject) {
  const known = instancePath.length > maxPathLength ? '' : instancePath
  const path = known.split('/').slice(1).map(unescaped)
  const { additionalProperty: foreign, missingProperty: missing } = params as Record<string, string>
  const named = foreign ?? missing
  return { path: named === undefined ? path : [...path, named], message }
}

const unescaped = (part: string) => part.replaceAll('~1', '/').replaceAll('~0', '~')
