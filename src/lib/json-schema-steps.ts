import type { _, Ajv, CodeKeywordDefinition, ErrorObject, KeywordCxt, Name } from 'ajv'
import { ValueIds } from './value-ids.ts'

/** Steps that a check may still take. */
export interface Budget {
  steps: number
}

/** Functions of Ajv that write code. */
export interface CodeWriter {
  _: typeof _
  Name: typeof Name
}

/** The check would take more steps than its budget has. */
export class TooManySteps extends Error {}

/** Characters of a text that take as long as one step. */
const charactersPerStep = 16
/** Steps of `pattern` that take as long as one step. */
const patternStepsPerStep = 4

/** Keywords whose subschemas apply to the value itself. If the schema has `unevaluated…` keywords, they copy the names of evaluated properties. */
const inPlace = new Set(['$ref', '$dynamicRef', '$recursiveRef', 'anyOf', 'oneOf', 'allOf', 'if'])
/** Keywords that read every item, every property name or every character of the value. */
const readsAll = new Set([
  ...['items', 'additionalItems', 'contains', 'unevaluatedItems', 'minLength', 'maxLength'],
  ...['additionalProperties', 'patternProperties', 'propertyNames', 'unevaluatedProperties'],
  ...['minProperties', 'maxProperties'],
])
/** Keywords that make an error for each of their names or branches. */
const makesErrors = new Set(['required', 'anyOf', 'oneOf'])

/** Matches code that Ajv writes to escape a property name for each reference and error below it. The replacement escapes each name once. */
const escaping = /(\w+)\.replace\(\/~\/g, ?"~0"\)\.replace\(\/\\\/\/g, ?"~1"\)/g
const escapeName = 'handrailEscape'
/** Matches code that Ajv writes to copy all errors for each reference that fails. The replacement appends the new errors. */
const copying = /\bvErrors\.concat\(([\w.]+)\)/g
const appendErrors = 'handrailAppend'
/** The replacements contain no quote and no backslash, so a string literal that comes from the schema stays one string literal. */
const inLinearTime = (code: string): string =>
  code
    .replaceAll(escaping, `self.${escapeName}($1)`)
    .replaceAll(copying, `self.${appendErrors}(vErrors, $1)`)

/**
 * Makes the checks that `ajv` compiles count their steps, and end soon after `maxErrors` errors. `start` sets
 * the budget of the next check; the check throws `TooManySteps` beyond it. `enum`, `const` and `uniqueItems` compare
 * values by their ids, so that each value is read once.
 */
export function boundSteps(ajv: Ajv, { _, Name }: CodeWriter, maxErrors: number) {
  let budget: Budget = { steps: 0 }
  const sizes = new Map<object, number>()
  const escapedNames = new Map<string, string>()
  const schemaIds = new ValueIds(() => {})
  let ids = schemaIds

  const take = (steps: number) => {
    budget.steps -= steps
    if (budget.steps < 0) throw new TooManySteps()
  }
  /** The number of items or properties, or the steps for reading the characters of a string. */
  const sizeOf = (value: unknown): number => {
    if (typeof value === 'string') return value.length / charactersPerStep
    if (typeof value !== 'object' || value === null) return 0
    if (Array.isArray(value)) return value.length
    let size = sizes.get(value)
    if (size === undefined) {
      size = Object.keys(value).length
      take(size)
      sizes.set(value, size)
    }
    return size
  }
  const step = (steps: number, each: number, value: unknown) =>
    take(each === 0 ? steps : steps + each * sizeOf(value))

  const escaped = (name: string): string => {
    const known = escapedNames.get(name)
    if (known !== undefined) return known
    const isPlain = !/[~/]/.test(name)
    take(isPlain ? 1 : 2 * name.length)
    const text = isPlain ? name : name.replaceAll('~', '~0').replaceAll('/', '~1')
    escapedNames.set(name, text)
    return text
  }

  const count = (context: KeywordCxt) => {
    const { gen, it, data } = context
    const steps = stepsOf(context)
    const each = stepsPerPart(context)
    const errors = new Name('errors')
    const call = gen.scopeValue('func', { ref: step })
    gen.code(_`${call}(${steps}, ${each}, ${each === 0 ? 0 : data})`)
    // Inside a keyword such as `anyOf`, Ajv may drop errors later. Elsewhere, an error means that the value does not fit.
    if (it.compositeRule) return
    gen.if(_`${errors} >= ${maxErrors}`, () => {
      gen.assign(_`${it.validateName}.errors`, new Name('vErrors'))
      gen.return(false)
    })
  }

  /** Replaces a keyword by a function that tests the value. */
  const replaceKeyword = (
    definition: Omit<CodeKeywordDefinition, 'code'>,
    testOf: (schema: never) => (value: never) => boolean,
  ) => {
    ajv.removeKeyword(definition.keyword as string)
    ajv.addKeyword({
      ...definition,
      code(context) {
        const test = context.gen.scopeValue('func', { ref: testOf(context.schema as never) })
        context.pass(_`${test}(${context.data})`)
      },
    })
  }
  const isOneOf = (values: readonly unknown[]) => {
    const wanted = Int32Array.from(values, (value) => schemaIds.of(value)).sort()
    return (value: unknown) => isIn(wanted, ids.of(value))
  }
  replaceKeyword(
    {
      ...{ keyword: 'enum', schemaType: 'array' },
      error: { message: 'must be equal to one of the allowed values' },
    },
    isOneOf,
  )
  replaceKeyword({ keyword: 'const', error: { message: 'must be equal to constant' } }, (value) =>
    isOneOf([value]),
  )
  replaceKeyword(
    {
      ...{ keyword: 'uniqueItems', type: 'array', schemaType: 'boolean' },
      error: { message: 'must NOT have duplicate items' },
    },
    (unique: boolean) => (items: unknown[]) => !unique || ids.areDistinct(items),
  )
  Object.assign(ajv, { [escapeName]: escaped, [appendErrors]: append })
  ajv.opts.code.process = inLinearTime
  for (const rule of Object.values(ajv.RULES.all)) {
    if (typeof rule !== 'object' || rule === null || !('code' in rule.definition)) continue
    const own = rule.definition.code
    rule.definition.code = (context, type) => {
      count(context)
      own(context, type)
    }
  }

  return {
    start(next: Budget): void {
      budget = next
      ids = new ValueIds(take, schemaIds)
    },
    /** Charges for the steps of a pattern, which count in smaller units. */
    takeOfPattern: (steps: number) => take(steps / patternStepsPerStep),
    /** Forgets the value that was checked. */
    end(): void {
      sizes.clear()
      escapedNames.clear()
      ids = schemaIds
    },
  }
}

/** Steps of a keyword that do not depend on the value: names, branches and items of the schema. */
function stepsOf({ keyword, schema }: KeywordCxt): number {
  if (keyword.endsWith('Ref') || keyword === '$ref') return 3
  if (keyword === 'enum' || keyword === 'const' || typeof schema !== 'object' || schema === null)
    return 1
  const parts = Object.values(schema as object)
  if (makesErrors.has(keyword)) return 1 + 3 * parts.length
  if (keyword !== 'dependentRequired' && keyword !== 'dependencies') return 1 + parts.length
  return parts.reduce<number>((sum, part) => sum + (Array.isArray(part) ? part.length : 1), 1)
}

/** Steps for each item, property name or group of characters of the value. */
function stepsPerPart({ keyword, schema, parentSchema, it }: KeywordCxt): number {
  if (keyword === 'uniqueItems') return 1
  const copied = it.opts.unevaluated ? 4 : 0
  if (inPlace.has(keyword)) return copied * (Array.isArray(schema) ? schema.length : 1)
  if (!readsAll.has(keyword)) return 0
  if (keyword === 'patternProperties') return (1 + copied) * Object.keys(schema).length
  if (keyword !== 'additionalProperties') return 1
  const { properties = {}, patternProperties = {} } = parentSchema
  return 1 + Math.min(8, Object.keys(properties).length) + Object.keys(patternProperties).length
}

function append(errors: ErrorObject[], more: ErrorObject[]): ErrorObject[] {
  for (const error of more) errors.push(error)
  return errors
}

/** Whether a sorted list contains a number. */
function isIn(sorted: Int32Array, wanted: number): boolean {
  let low = 0
  let high = sorted.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (sorted[middle]! < wanted) low = middle + 1
    else high = middle
  }
  return sorted[low] === wanted
}
