import type { Ajv, ErrorObject } from 'ajv'
import type { InputIssue, JsonInput } from '../../core/tool.ts'
import { linearPattern } from '../../lib/linear.ts'

/** Longer ones are no description of an input. */
const longest = 200_000

/** Steps that the patterns of a schema may take in all for one input: some tenths of a second. */
const mostSteps = 20_000_000

/** Reads JSON Schemas of others: each is kept as it is, and checked by what it says it is. */
export async function schemaReader(): Promise<(json: object) => JsonInput> {
  const options = { strict: false, validateFormats: false, validateSchema: false, allErrors: true }
  const { Ajv } = await import('ajv')
  const { Ajv2020 } = await import('ajv/dist/2020.js')
  return (json) => {
    if (JSON.stringify(json).length > longest) throw new Error('its input schema is too long')
    const patterns = boundedPatterns()
    const own = { ...options, code: { regExp: patterns.read } }
    // One for each: they may use the same `$id` for different things.
    const ajv: Ajv = isOld(json) ? new Ajv(own) : new Ajv2020(own)
    const check = ajv.compile(json)
    const issues = (value: unknown) => {
      patterns.restart()
      return check(value) ? [] : (check.errors ?? []).map(issueOf)
    }
    return { json, issues }
  }
}

/**
 * The patterns of strangers: what a model sends, or a stranger has it send, may not keep the server busy. What
 * would take too long to look through does not match.
 */
function boundedPatterns() {
  let left = mostSteps
  const read = (source: string) => {
    const found = linearPattern(source)
    const test = (text: string): boolean => {
      left -= found.size * text.length
      return left >= 0 && found(text) === true
    }
    return { test, toString: () => source }
  }
  const restart = () => {
    left = mostSteps
  }
  // The code is for checks that are written to a file; ours are not.
  return { read: Object.assign(read, { code: 'linearPattern' }), restart }
}

const isOld = ({ $schema }: { $schema?: unknown }): boolean =>
  typeof $schema === 'string' && /draft-0[4-7]/.test($schema)

function issueOf({ instancePath, message = 'is not valid', params }: ErrorObject): InputIssue {
  const path = instancePath.split('/').slice(1).map(unescaped)
  const { additionalProperty: foreign, missingProperty: missing } = params as Record<string, string>
  const named = foreign ?? missing
  return { path: named === undefined ? path : [...path, named], message }
}

const unescaped = (part: string) => part.replaceAll('~1', '/').replaceAll('~0', '~')
