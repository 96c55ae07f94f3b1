import fc from 'fast-check'
import type { z } from 'zod'
import { bodies, type Kind, type Known } from '../../src/core/entries.ts'

interface Def {
  type: string
  shape?: Record<string, z.ZodType>
  element?: z.ZodType
  innerType?: z.ZodType
  options?: z.ZodType[]
  entries?: Record<string, string>
  values?: unknown[]
}

/** Few ids, so that entries speak of each other. */
const ids = fc.constantFrom('a', 'b', 'c', 'd')

/** Any value that a schema of ours accepts. */
export function anyOf(schema: z.ZodType): fc.Arbitrary<unknown> {
  const def = schema.def as unknown as Def
  switch (def.type) {
    case 'object':
      return fc.record(
        Object.fromEntries(Object.entries(def.shape!).map(([key, one]) => [key, anyOf(one)])),
      )
    case 'array':
      return fc.array(anyOf(def.element!), { maxLength: 4 })
    case 'optional':
      return fc.option(anyOf(def.innerType!), { nil: undefined })
    case 'nullable':
      return fc.option(anyOf(def.innerType!), { nil: null })
    case 'union':
      return fc.oneof(...def.options!.map(anyOf))
    case 'enum':
      return fc.constantFrom(...Object.values(def.entries!))
    case 'literal':
      return fc.constantFrom(...def.values!)
    case 'string':
      return fc.oneof(ids, fc.string({ maxLength: 8 }))
    case 'number':
      return fc.nat(1_000)
    case 'boolean':
      return fc.boolean()
    case 'record':
      return fc.dictionary(fc.string({ maxLength: 4 }), fc.jsonValue())
    case 'unknown':
      return fc.jsonValue()
    default:
      throw new Error(`no arbitrary for ${def.type}`)
  }
}

const kinds = Object.keys(bodies) as Kind[]

/** Any sequence of entries that a journal may hold, in any order. */
export const anyJournal: fc.Arbitrary<Known[]> = fc
  .array(
    fc.constantFrom(...kinds).chain((kind) =>
      fc.record({
        kind: fc.constant(kind),
        body: anyOf(bodies[kind]),
        runId: fc.option(ids, { nil: undefined }),
        legId: fc.option(ids, { nil: undefined }),
        at: fc.nat(1_000_000),
        fence: fc.nat(10),
      }),
    ),
    { maxLength: 40 },
  )
  .map((list) =>
    list.map((one, i) => ({
      v: 1,
      id: `e${i}`,
      threadId: 't',
      seq: i + 1,
      tx: `tx${i}`,
      actor: { type: 'user', id: 'u' },
      digest: '',
      ...one,
    })),
  ) as fc.Arbitrary<Known[]>
