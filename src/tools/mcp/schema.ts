import type { Ajv, ErrorObject } from 'ajv'
import type { InputIssue, JsonInput } from '../../core/tool.ts'

/** Longer ones are no description of an input. */
const longest = 200_000

/** Reads JSON Schemas of others: each is kept as it is, and checked by what it says it is. */
export async function schemaReader(): Promise<(json: object) => JsonInput> {
  const options = { strict: false, validateFormats: false, validateSchema: false, allErrors: true }
  const { Ajv } = await import('ajv')
  const { Ajv2020 } = await import('ajv/dist/2020.js')
  return (json) => {
    if (JSON.stringify(json).length > longest) throw new Error('its input schema is too long')
    // One for each: they may use the same `$id` for different things.
    const ajv: Ajv = isOld(json) ? new Ajv(options) : new Ajv2020(options)
    const check = ajv.compile(json)
    return { json, issues: (value) => (check(value) ? [] : (check.errors ?? []).map(issueOf)) }
  }
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
