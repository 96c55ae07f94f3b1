/** As much of JSON Schema as a form can show; the server checks all of it. */
export interface FieldSchema {
  type?: string | string[]
  title?: string
  description?: string
  enum?: unknown[]
  const?: unknown
  default?: unknown
  minLength?: number
  maxLength?: number
  pattern?: string
  minimum?: number
  maximum?: number
}

export interface Field {
  /** The way to it, with points: `recommendation.priority`. */
  name: string
  path: string[]
  schema: FieldSchema
  required: boolean
  control: 'text' | 'number' | 'yes-no' | 'choice' | 'json'
}

type Named = Record<string, unknown>

/** Objects in objects: deeper than this they are written as JSON. */
const deepest = 3

/** The fields of an object: those of its schema, and those that the value has besides where it may. */
export function fieldsOf(schema: unknown, value: unknown, above: string[] = []): Field[] {
  const {
    properties = {},
    required = [],
    additionalProperties,
  } = (isNamed(schema) ? schema : {}) as ObjectSchema
  const given = isNamed(value) ? value : {}
  const besides = additionalProperties === false ? [] : Object.keys(given)
  const names = [...new Set([...Object.keys(properties), ...besides])]
  return names.flatMap((name) => {
    const one = properties[name] ?? {}
    const path = [...above, name]
    const needed = required.includes(name)
    if (needed && isNamed((one as ObjectSchema).properties) && path.length < deepest)
      return fieldsOf(one, given[name], path)
    return {
      ...{ name: path.join('.'), path, schema: one, required: needed },
      control: controlOf(one, given[name]),
    }
  })
}

interface ObjectSchema {
  properties?: Record<string, FieldSchema>
  required?: string[]
  additionalProperties?: unknown
}

export const valueAt = (value: unknown, path: readonly string[]): unknown =>
  path.reduce((now: unknown, name) => (isNamed(now) ? now[name] : undefined), value)

/** Puts a value where its path leads, making the objects on the way. */
export function put(into: Named, path: readonly string[], value: unknown): void {
  let at = into
  for (const name of path.slice(0, -1)) {
    at[name] ??= {}
    at = at[name] as Named
  }
  at[path.at(-1)!] = value
}

export const isNamed = (value: unknown): value is Named =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function controlOf(schema: FieldSchema, value: unknown): Field['control'] {
  if (schema.enum?.every((one) => typeof one === 'string')) return 'choice'
  const type = schema.type ?? (value === undefined ? undefined : typeof value)
  if (type === 'string' && (value === undefined || typeof value === 'string')) return 'text'
  if (type === 'number' || type === 'integer') return 'number'
  return type === 'boolean' ? 'yes-no' : 'json'
}

/** A value as a form holds it. */
export function written({ control }: Field, value: unknown): string {
  if (value === undefined) return ''
  return control === 'json' ? JSON.stringify(value, null, 2) : String(value)
}

/** What was written as a value, or what is wrong with it. Nothing is no value. */
export function readField(field: Field, text: string): { value?: unknown } | { problem: string } {
  const { control, schema, required } = field
  const empty = text === ''
  if (empty && control !== 'text') return required ? { problem: 'This is needed.' } : {}
  if (control === 'text') return empty && !required ? {} : readText(schema, text)
  if (control === 'choice') return { value: text }
  if (control === 'yes-no') return { value: text === 'true' }
  if (control === 'number') return readNumber(schema, Number(text))
  try {
    return { value: JSON.parse(text) as unknown }
  } catch {
    return { problem: 'This is not JSON. Texts need quotes.' }
  }
}

function readText(schema: FieldSchema, value: string): { value: string } | { problem: string } {
  const { minLength = 0, maxLength = Number.POSITIVE_INFINITY, pattern } = schema
  if (value.length < minLength)
    return { problem: value === '' ? 'This is needed.' : `At least ${minLength} characters.` }
  if (value.length > maxLength) return { problem: `At most ${maxLength} characters.` }
  if (pattern !== undefined && !fits(pattern, value))
    return { problem: `This must match ${pattern}.` }
  return { value }
}

function readNumber(schema: FieldSchema, value: number): { value: number } | { problem: string } {
  const { minimum, maximum, type } = schema
  if (!Number.isFinite(value)) return { problem: 'This must be a number.' }
  if (type === 'integer' && !Number.isInteger(value))
    return { problem: 'This must be a whole number.' }
  if (minimum !== undefined && value < minimum) return { problem: `At least ${minimum}.` }
  if (maximum !== undefined && value > maximum) return { problem: `At most ${maximum}.` }
  return { value }
}

/** Characters that a pattern is tried on here: two parts of variable length try each pair of them. */
const maxTried = 300

/**
 * Whether a value fits a pattern. Agents and MCP servers write patterns, and the browser tries a pattern in many
 * ways: one that could freeze the page, or that the browser cannot read, is left to the server.
 */
function fits(pattern: string, value: string): boolean {
  if (value.length > maxTried || !isQuick(pattern)) return true
  try {
    return new RegExp(pattern, 'u').test(value)
  } catch {
    return true
  }
}

/** Anchored, without groups and alternatives, and with at most two parts of variable length. */
function isQuick(pattern: string): boolean {
  const plain = pattern.replace(/\\./gs, 'x').replace(/\[[^\]]*\]/g, 'x')
  if (!plain.startsWith('^') || /[(|]/.test(plain)) return false
  return (plain.match(/[*+?]|\{\d*,\d*\}/g) ?? []).length <= 2
}
