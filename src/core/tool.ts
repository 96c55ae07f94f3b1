import { setImmediate } from 'node:timers/promises'
import { z } from 'zod'
import { atOnce } from '../lib/at-once.ts'
import { deeperThan } from '../lib/depth.ts'
import { isJson } from '../lib/json.ts'
import { sameJson } from '../lib/json-patch.ts'
import { shareClass } from '../lib/shared-class.ts'
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
  /**
   * Milliseconds after which its signal fires. Default 30,000. Unless the tool is idempotent or only reads,
   * a call that does not return by then is in doubt: `check()` or a person says whether it happened.
   */
  readonly timeout?: number
  /** One plain sentence of what will happen, for the person who decides: "Write notes.txt (5 bytes)". */
  describe?(input: InputOf<Schema>, owner: ToolContext): string
  /** The one thing it touches: a path, an address, an account. */
  target?(input: InputOf<Schema>, owner: ToolContext): string
  /** How much harm a mistake would do, and why; by default what `access` says. */
  risk?(input: InputOf<Schema>, owner: ToolContext): Risk
  /** What would change, for the person who decides. Must have no effect of its own. */
  preview?(
    input: InputOf<Schema>,
    signal: AbortSignal,
    owner: ToolContext,
  ): Promise<Preview | undefined>
  /** After a crash or a timeout: did the effect with this id happen? `undefined` when it cannot be known. */
  check?(
    input: InputOf<Schema>,
    effectId: string,
    signal: AbortSignal,
    owner: ToolContext,
  ): Promise<{ happened: true; output: string } | { happened: false } | undefined>
  /**
   * Does it. An error is a result too: the model gets its message. After the signal fired, an error does not
   * say whether the effect happened, unless it is an `EffectDidNotHappen`.
   */
  run(input: InputOf<Schema>, use: ToolUse): Promise<unknown>
}

export interface Risk {
  level: 'low' | 'medium' | 'high'
  /** One plain sentence. */
  why: string
}

/** `diff`: two sides, the old one null where there is none; the others are shown as they are. */
export type Preview = (
  | { kind: 'diff'; before: string | null; after: string }
  | { kind: 'code' | 'text'; text: string }
) & {
  /**
   * Identifies the state that the preview was made from, such as the digest of the file that would be
   * replaced; at most 500 characters. An approval holds only while a new preview returns the same value.
   * Otherwise the runtime asks again, with a new preview.
   */
  precondition?: string
}

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

/** The tenant and user that own the thread. A tool must not share data between two owners (I10). */
export interface ToolContext {
  readonly tenant: string
  readonly user: string
}

export interface ToolUse extends ToolContext {
  /** Fires at cancel and at the tool's timeout. */
  signal: AbortSignal
  /** The same for every attempt at the same effect: hand it on as the idempotency key. */
  effectId: string
  /**
   * The precondition of the preview that the person approved. `run` compares it as late as it can, and throws
   * `PreconditionChanged` if it does not hold. Absent if nobody saw a preview of this call.
   */
  precondition?: string
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
shareClass(OutcomeUnknown, 'OutcomeUnknown')

/** Thrown by `run` if `use.precondition` does not hold and nothing was done. A person is asked again. */
export class PreconditionChanged extends Error {
  override name = 'PreconditionChanged'
}
shareClass(PreconditionChanged, 'PreconditionChanged')

/**
 * Thrown by a tool that knows that its effect did not happen, also when it was told to stop. The call is
 * then recorded as failed, and nobody is asked.
 */
export class EffectDidNotHappen extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'EffectDidNotHappen'
  }
}
shareClass(EffectDidNotHappen, 'EffectDidNotHappen')

/** Whether a call that was cut off may simply have failed: repeating it does no harm. */
export const isHarmless = ({ idempotent, access }: Pick<Tool, 'idempotent' | 'access'>): boolean =>
  idempotent === true || access === 'read'

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

/** The schema of the input that a model writes. Types that JSON lacks are described by the text that they are made of. */
export function jsonSchemaOf(tool: Tool): unknown {
  let schema = schemas.get(tool)
  if (schema === undefined) {
    schema = isZod(tool.schema) ? fromZod(tool.schema) : tool.schema.json
    schemas.set(tool, schema)
  }
  return schema
}

const fromZod = (schema: z.ZodType) =>
  z.toJSONSchema(schema, {
    io: 'input',
    unrepresentable: 'any',
    override({ zodSchema, jsonSchema }) {
      const { type } = zodSchema._zod.def
      if (type === 'date') Object.assign(jsonSchema, { type: 'string', format: 'date-time' })
      if (type === 'bigint') Object.assign(jsonSchema, { type: 'string', pattern: '^-?[0-9]+$' })
    },
  })

/** The path of a field whose type no JSON value fits, such as `z.date()`; `z.coerce` and `z.preprocess` make one that fits. */
export function unfitField(schema: z.ZodType): string | undefined {
  const unfit: string[] = []
  const prepared: string[] = []
  z.toJSONSchema(schema, {
    io: 'input',
    unrepresentable: 'any',
    override({ zodSchema: { _zod }, path }) {
      const { type, coerce, in: first } = _zod.def as Definition
      const at = path.filter((name) => name !== 'properties').join('.')
      if (type === 'pipe' && first?._zod.def.type === 'transform') prepared.push(at)
      else if (notInJson.has(type) && !coerce) unfit.push(at)
    },
  })
  const isPrepared = (at: string) =>
    prepared.some((one) => one === '' || one === at || at.startsWith(`${one}.`))
  return unfit.find((at) => !isPrepared(at))
}

type Definition = z.core.$ZodTypeDef & { coerce?: boolean; in?: z.core.$ZodType }
const notInJson = new Set<string>(['date', 'bigint', 'set', 'map', 'symbol', 'function'])

export interface ParsedInput {
  /** Output of the schema, as the tool takes it. */
  input: unknown
  /** JSON that stands for it on cards, in digests and in the journal. */
  shown: unknown
  /**
   * `shown` is the value before parsing, because JSON cannot represent `input`, or because parsing `input` again would
   * return something else. It is parsed again to run, so that the schema is applied once.
   */
  raw?: true
}

type Unread = { issues: InputIssue[]; thrown?: unknown }

/** The input as the tool takes it, or what is wrong with it; `thrown` where that is the schema's own fault. */
export function readInput(tool: Tool, value: unknown): ParsedInput | Unread {
  const steps = readingSteps(tool, value)
  for (;;) {
    const step = steps.next()
    if (step.done) return step.value
  }
}

/** `readInput` in several turns of the event loop: a large input takes milliseconds in each step. */
export async function readInputInTurns(tool: Tool, value: unknown): Promise<ParsedInput | Unread> {
  const steps = readingSteps(tool, value)
  for (;;) {
    const step = steps.next()
    if (step.done) return step.value
    await setImmediate()
  }
}

/** Parses an input and chooses the JSON that stands for it: the output, unless that would lose or change something. */
function* readingSteps(tool: Tool, value: unknown): Generator<void, ParsedInput | Unread> {
  const read = parseOnce(tool, value)
  if ('issues' in read) return read
  const { input } = read
  const parsed: ParsedInput = { input, shown: input }
  if (input === value) return parsed // a JSON Schema changes nothing
  yield
  if (!isJson(input, value)) return { input, shown: value, raw: true }
  if (sameJson(input, value)) return parsed
  yield
  const again = parseOnce(tool, input)
  yield
  return isSame(again, input) ? parsed : { input, shown: value, raw: true }
}

/** Whether parsing a JSON value returns the same value, so that it means the same before and after parsing. */
export const isStable = (tool: Tool, value: unknown): boolean =>
  isSame(parseOnce(tool, value), value)

const isSame = (read: { input: unknown } | Unread, value: unknown): boolean =>
  'input' in read && isJson(read.input, value) && sameJson(read.input, value)

/** Parses a value, without looking for the JSON that stands for the result. */
export function parseOnce({ schema }: Tool, value: unknown): { input: unknown } | Unread {
  if (deeperThan(value, deepest)) return { issues: [{ path: [], message: 'is nested too deeply' }] }
  if (!isZod(schema)) {
    const issues = atOnce(() => schema.issues(value)) as InputIssue[] | undefined
    if (!issues) return { issues: [{ path: [], message: 'could not be checked' }] }
    return issues.length === 0 ? { input: value } : { issues }
  }
  try {
    const parsed = schema.safeParse(structuredClone(value)) // a transform may change what it is given
    return parsed.success ? { input: parsed.data } : { issues: issuesOf(parsed.error) }
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
