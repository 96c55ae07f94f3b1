import { z } from 'zod'

/** Something an agent can do in the world. Tools know nothing of runs, approvals or journals. */
export interface Tool<Schema extends z.ZodType = z.ZodType> {
  readonly name: string
  readonly description: string
  /** What the model may send. Must describe an object. */
  readonly schema: Schema
  /** Doing it twice is the same as doing it once: it is simply made again after a crash. */
  readonly idempotent?: boolean
  /** What it touches; the default policy asks before `write`, `execute` and anything unknown. */
  readonly access?: 'read' | 'write' | 'execute'
  /** Milliseconds after which it is aborted and cannot still be going on. Default 30,000. */
  readonly timeout?: number
  /** One plain sentence of what will happen, for the person who decides: "Write notes.txt (5 bytes)". */
  describe?(input: z.output<Schema>): string
  /** What would change, for the person who decides. Must have no effect of its own. */
  preview?(input: z.output<Schema>, signal: AbortSignal): Promise<unknown>
  /** After a crash: did the effect with this id happen? `undefined` when it cannot be known. */
  check?(
    input: z.output<Schema>,
    effectId: string,
    signal: AbortSignal,
  ): Promise<{ happened: true; output: string } | { happened: false } | undefined>
  /** Does it. Throwing is a result too: the model hears the message. */
  run(input: z.output<Schema>, use: ToolUse): Promise<unknown>
}

export interface ToolUse {
  /** Fires at cancel and at the tool's timeout. */
  signal: AbortSignal
  /** The same for every attempt at the same effect: hand it on as the idempotency key. */
  effectId: string
  /** Shows output while the tool runs; not kept, the result is. */
  write(text: string): void
}

export const defaultToolTimeout = 30_000

/** Keeps the input type of `run` and the others tied to the schema. */
export function defineTool<Schema extends z.ZodType>(tool: Tool<Schema>): Tool {
  return tool as unknown as Tool
}

const schemas = new WeakMap<Tool, unknown>()

export function jsonSchemaOf(tool: Tool): unknown {
  let schema = schemas.get(tool)
  if (schema === undefined) {
    schema = z.toJSONSchema(tool.schema, { io: 'input' })
    schemas.set(tool, schema)
  }
  return schema
}
