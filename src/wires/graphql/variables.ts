import {
  type GraphQLInputType,
  type GraphQLSchema,
  isEnumType,
  isInputObjectType,
  isInputType,
  isListType,
  isNonNullType,
  isScalarType,
  type OperationDefinitionNode,
  typeFromAST,
} from 'graphql'
import { RuntimeError } from '../../core/errors.ts'
import { isLarger } from '../../lib/size.ts'

/** Variables up to this size are left to GraphQL, whose messages contain the value that is wrong. */
const smallSize = { values: 200, characters: 2_000 }
/** Characters of a number, a date or the name of an enum value. */
const maxLeafLength = 100

/**
 * Finds the first error in large variables, before GraphQL coerces them: it writes the whole value into each of up to
 * 50 messages, which takes seconds. Returns undefined for small variables and for those that fit.
 */
export function variablesProblem(
  schema: GraphQLSchema,
  { variableDefinitions = [] }: OperationDefinitionNode,
  variables: unknown,
): RuntimeError | undefined {
  const given = Object(variables ?? {}) as Record<string, unknown>
  if (!isLarger(given, smallSize)) return undefined
  for (const { variable, type: node } of variableDefinitions) {
    const type = typeFromAST(schema, node)
    const name = variable.name.value
    if (!isInputType(type) || !Object.hasOwn(given, name)) continue
    const problem = findProblem(type, given[name], name)
    if (problem) return problem
  }
  return undefined
}

function findProblem(
  type: GraphQLInputType,
  value: unknown,
  path: string,
): RuntimeError | undefined {
  if (isNonNullType(type))
    return value === null ? invalid(path, 'is missing.') : findProblem(type.ofType, value, path)
  if (value === null) return undefined
  if (isListType(type)) {
    if (!Array.isArray(value)) return findProblem(type.ofType, value, path)
    return firstOf(value.keys(), (i) => findProblem(type.ofType, value[i], `${path}.${i}`))
  }
  if (isInputObjectType(type)) {
    if (typeof value !== 'object' || Array.isArray(value))
      return invalid(path, 'must be an object.')
    const fields = type.getFields()
    for (const name in value)
      if (!Object.hasOwn(fields, name))
        return invalid(`${path}.${name.slice(0, 100)}`, 'is not known here. Leave it out.')
    return firstOf(Object.values(fields), ({ name, type: inner, defaultValue }) => {
      const part = (value as Record<string, unknown>)[name]
      if (part !== undefined) return findProblem(inner, part, `${path}.${name}`)
      const missing = isNonNullType(inner) && defaultValue === undefined
      return missing ? invalid(`${path}.${name}`, 'is missing.') : undefined
    })
  }
  return fits(type, value) ? undefined : invalid(path, `must be of the type ${type.name}.`)
}

function fits(type: GraphQLInputType, value: unknown): boolean {
  if (isEnumType(type)) return typeof value === 'string' && type.getValue(value) !== undefined
  if (!isScalarType(type) || type.name === 'JSON') return true
  if (type.name === 'JSONObject') return typeof value === 'object' && !Array.isArray(value)
  if (type.name === 'String') return typeof value === 'string'
  return typeof value !== 'object' && String(value).length <= maxLeafLength
}

function firstOf<T>(
  items: Iterable<T>,
  find: (item: T) => RuntimeError | undefined,
): RuntimeError | undefined {
  for (const item of items) {
    const found = find(item)
    if (found) return found
  }
  return undefined
}

const invalid = (field: string, problem: string) =>
  new RuntimeError('invalid_request', `${field}: ${problem}`, { field })
