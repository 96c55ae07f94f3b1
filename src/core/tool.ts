import { z } from 'zod'
import { atOnce } from '../lib/at-once.ts'
import { canonical } from '../lib/canonical.ts'
import { deeperThan } from '../lib/depth.ts'
import type { Answer } from './entries.ts'
import type { Recall, RecallQuery } from './recall.ts'

/** Something an agent can do in the world. Tools know nothing of runs, approvals or journals. */
export interface Tool<Schema extends InputSchema = InputSchema> {
  readonly name: string
  readonly description: string
  /** What the model may send. Must describe an object. */
  readonly schema: Schema
  /** The MCP server that it is a tool of. */
  readonly server?: string
  /** Where it comes from, as one word: from elsewhere it is another tool, whatever its name. */
  readonly origin?: string
  /** Doing it twice is the same as doing it once: it is simply made again after a crash. */
  readonly idempotent?: boolean
  /** What it touches; the default policy asks before `write`, `execute` and anything unknown. */
  readonly access?: 'read' | 'write' | 'execute'
  /** Milliseconds after which it is aborted and cannot still be going on. Default 30,000. */
  readonly timeout?: number
  /** One plain sentence of what will happen, for the person who decides: "Write notes.txt (5 bytes)". */
  describe?(input: InputOf<Schema>): string
  /** The one thing it touches: a path, an address, an account. */
  target?(input: InputOf<Schema>): string
  /** How much harm a mistake would do, and why; by default what `access` says. */
  risk?(input: InputOf<Schema>): Risk
  /** What would change, for the person who decides. Must have no effect of its own. */
  preview?(input: InputOf<Schema>, signal: AbortSignal): Promise<Preview | undefined>
  /** After a crash: did the effect with this id happen? `undefined` when it cannot be known. */
  check?(
    input: InputOf<Schema>,
    effectId: string,
    signal: AbortSignal,
  ): Promise<{ happened: true; output: string } | { happened: false } | undefined>
  /** Does it. Throwing is a result too: the model hears the message. */
  run(input: InputOf<Schema>, use: ToolUse): Promise<unknown>
}

export interface Risk {
  level: 'low' | 'medium' | 'high'
  /** One plain sentence. */
  why: string
}

/** `diff`: two sides, the old one null where there is none; the others are shown as they are. */
export type Preview =
  | { kind: 'diff'; before: string | null; after: string }
  | { kind: 'code' | 'text'; text: string }

/** A zod schema, or a JSON Schema from elsewhere that is kept as it is, with what checks it. */
export type InputSchema = z.ZodType | JsonInput

export interface JsonInput {
  readonly json: object
  /** What is wrong with a value; nothing when it fits. */
  issues(value: unknown): InputIssue[]
}

export interface InputIssue {
  path: string[]
  message: string
}

type InputOf<Schema> = Schema extends z.ZodType ? z.output<Schema> : unknown

export interface ToolUse {
  /** Fires at cancel and at the tool's timeout. */
  signal: AbortSignal
  /** The same for every attempt at the same effect: hand it on as the idempotency key. */
  effectId: string
  /** Whose data it works on: nothing may be shared between two of them. */
  tenant: string
  /** What was said on other threads of the same owner. */
  recall(query: RecallQuery): Promise<Recall>
  /** Shows output while the tool runs; not kept, the result is. */
  write(text: string): void
  /**
   * Asks the user while the tool runs on; the time that takes is not the tool's. What ends without an
   * answer, by its deadline, by `gone` or with the tool, is told as such; it never rejects.
   */
  ask(
    question: ToolQuestion,
    gone?: AbortSignal,
  ): Promise<Pick<Answer, 'state' | 'value' | 'reason'>>
}

export interface ToolQuestion {
  title: string
  /** JSON Schema that the answer must satisfy. */
  schema?: unknown
  /** Milliseconds to wait for an answer. */
  timeout?: number
}

/**
 * Thrown by a tool that was cut off in the middle: it may have done it, in full or in part. Unless it
 * is idempotent, a person is asked, as after a crash of our own.
 */
export class OutcomeUnknown extends Error {
  /** Nothing of it can still be going on. */
  readonly over: boolean

  constructor(message: string, over: boolean) {
    super(message)
    this.name = 'OutcomeUnknown'
    this.over = over
  }
}

export const defaultToolTimeout = 30_000
/** Levels of an input: what reads it, digests it and shows it goes down into each. */
const deepest = 64

/** One of each name: the last, which takes the place of those before it. */
export const lastOfEach = (tools: readonly Tool[]): readonly Tool[] => [
  ...new Map(tools.map((tool) => [tool.name, tool])).values(),
]

/** Keeps the input type of `run` and the others tied to the schema. */
export function defineTool<Schema extends InputSchema>(tool: Tool<Schema>): Tool {
  return tool as unknown as Tool
}

const schemas = new WeakMap<Tool, unknown>()

export function jsonSchemaOf(tool: Tool): unknown {
  let schema = schemas.get(tool)
  if (schema === undefined) {
    schema = isZod(tool.schema) ? z.toJSONSchema(tool.schema, { io: 'input' }) : tool.schema.json
    schemas.set(tool, schema)
  }
  return schema
}

/** The input as the tool takes it, or what is wrong with it; `thrown` where that is the schema's own fault. */
export function readInput(
  { schema }: Tool,
  value: unknown,
): { input: unknown } | { issues: InputIssue[]; thrown?: unknown } {
  if (deeperThan(value, deepest)) return { issues: [{ path: [], message: 'is nested too deeply' }] }
  if (!isZod(schema)) {
    const issues = atOnce(() => schema.issues(value)) as InputIssue[] | undefined
    if (!issues) return { issues: [{ path: [], message: 'could not be checked' }] }
    return issues.length === 0 ? { input: value } : { issues }
  }
  try {
    const parsed = schema.safeParse(value)
    if (!parsed.success) return { issues: issuesOf(parsed.error) }
    canonical(parsed.data) // what cannot be written down cannot be shown either
    return { input: parsed.data }
  } catch (thrown) {
    const message = thrown instanceof Error ? thrown.message : String(thrown)
    return { issues: [{ path: [], message }], thrown }
  }
}

/** A key that does not belong there is named by the path, too. */
export function issuesOf({ issues }: z.ZodError): InputIssue[] {
  return issues.map((issue) => {
    const foreign = issue.code === 'unrecognized_keys' ? issue.keys.slice(0, 1) : []
    return { path: [...issue.path.map(String), ...foreign], message: issue.message }
  })
}

export const isZod = (schema: unknown): schema is z.ZodType =>
  (schema as { _zod?: unknown } | undefined)?._zod !== undefined
