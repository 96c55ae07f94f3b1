import type { z } from 'zod'
import { defineTool, type Tool } from '../core/tool.ts'

/** A tool as it is written down in a configuration: its name is its key there, or `name`. */
export interface ToolDefinition<Schema extends z.ZodType = z.ZodType>
  extends Pick<
    Tool<Schema>,
    | 'description'
    | 'idempotent'
    | 'access'
    | 'timeout'
    | 'describe'
    | 'target'
    | 'risk'
    | 'preview'
    | 'check'
    | 'run'
  > {
  name?: string
  /** What the model may send. Must describe an object. */
  input: Schema
}

export interface NamelessTool extends Omit<Tool, 'name'> {
  readonly name?: string
}

/** Keeps the input of `run` tied to the schema. */
export function tool<Schema extends z.ZodType>(given: ToolDefinition<Schema>): NamelessTool {
  const { input: schema, name, ...rest } = given
  const made = defineTool({ ...rest, schema, name: name ?? '' })
  const { name: _, ...nameless } = made
  return name === undefined ? nameless : made
}

/** Tools in a list, each with its name, or by their names. */
export type ToolList = readonly (Tool | NamelessTool)[] | Readonly<Record<string, NamelessTool>>

/** All of them with their names. Throws with one sentence for those that have none, or a strange one. */
export function namedTools(given: ToolList): Tool[] {
  const all: [string, NamelessTool][] = Array.isArray(given)
    ? given.map((one: NamelessTool, i) => [String(i), one])
    : Object.entries(given)
  return all.map(([key, one]) => {
    const name = one.name || (Array.isArray(given) ? undefined : key)
    if (name === undefined) throw new Error(`tools.${key}: give it a name.`)
    if (!/^[a-zA-Z0-9_-]{1,64}$/.test(name)) {
      throw new Error(`tools.${name}: name tools with 1 to 64 letters, digits, _ and -.`)
    }
    return one.name === name ? (one as Tool) : { ...one, name }
  })
}
