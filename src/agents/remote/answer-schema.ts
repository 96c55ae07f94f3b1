import { deeperThan } from '../../lib/depth.ts'

/** Keywords whose names are of their author's choice, and those that hold values rather than schemas. */
const maps = new Set(['properties', '$defs', 'definitions', 'dependentSchemas'])
const values = new Set(['const', 'default', 'enum', 'examples'])
const patterns = new Set(['pattern', 'patternProperties'])
/** Levels of a schema that anybody fills in a form of. */
const deepest = 64

/**
 * The schema of an answer without its patterns: one that was made for it would keep the server busy while it
 * looks at an answer. The remote agent looks at what it gets anyway.
 */
export const answerSchema = (schema: unknown): unknown =>
  deeperThan(schema, deepest) ? {} : unpatterned(schema)

function unpatterned(schema: unknown, named = false): unknown {
  if (Array.isArray(schema)) return schema.map((one) => unpatterned(one))
  if (typeof schema !== 'object' || schema === null) return schema
  const kept = Object.entries(schema).filter(([key]) => named || !patterns.has(key))
  return Object.fromEntries(
    kept.map(([key, part]) => {
      if (named) return [key, unpatterned(part)]
      return [key, values.has(key) ? part : unpatterned(part, maps.has(key))]
    }),
  )
}
