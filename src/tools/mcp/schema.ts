import type { JsonInput } from '../../core/tool.ts'
import { compileSchema, type SchemaCheck, SchemaTooComplex } from '../../lib/json-schema.ts'

/**
 * Reads input schemas of MCP tools. A schema is kept as it is; throws if its input cannot be checked. For a schema that would take too
 * long to compile, only the MCP server checks the input.
 */
export async function schemaReader(): Promise<(json: object) => JsonInput> {
  return (json) => ({ json, issues: checkOf(json) })
}

function checkOf(json: object): SchemaCheck {
  try {
    return compileSchema(json, { unsupportedPatterns: 'refuse' })
  } catch (error) {
    if (error instanceof SchemaTooComplex) return checkObject
    throw error
  }
}

const checkObject: SchemaCheck = (value) =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? []
    : [{ path: [], message: 'must be object' }]
