import { GraphQLError, GraphQLScalarType, Kind, type ValueNode, valueFromASTUntyped } from 'graphql'

/** The scalars of the contract. What a client may get wrong is refused with what would be right. */
export const scalars = {
  DateTimeISO: new GraphQLScalarType<Date, string>({
    name: 'DateTimeISO',
    serialize: (value) => toDate(value).toISOString(),
    parseValue: toDate,
    parseLiteral: (node) => toDate(node.kind === Kind.STRING ? node.value : undefined),
  }),
  JSON: new GraphQLScalarType<unknown, unknown>({
    name: 'JSON',
    serialize: (value) => value,
    parseValue: (value) => value,
    parseLiteral: plain,
  }),
  JSONObject: new GraphQLScalarType<object, object>({
    name: 'JSONObject',
    serialize: toObject,
    parseValue: toObject,
    parseLiteral: (node, variables) => toObject(plain(node, variables)),
  }),
}

const dateTime = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/

function toDate(value: unknown): Date {
  const known = value instanceof Date || (typeof value === 'string' && dateTime.test(value))
  const date = new Date(known ? value : NaN)
  if (!Number.isNaN(date.getTime())) return date
  throw new GraphQLError('A date and time is needed, such as "2026-02-03T04:05:06.789Z".')
}

function toObject(value: unknown): object {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value
  throw new GraphQLError('A JSON object is needed, such as {"key": "value"}.')
}

function plain(node: ValueNode, variables?: Record<string, unknown> | null): unknown {
  return valueFromASTUntyped(node, variables)
}
