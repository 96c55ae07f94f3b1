import { z } from 'zod'
import { wrong } from '../scribe.ts'

const maybe = <T extends z.ZodType>(schema: T) =>
  schema.nullish().transform((value) => value ?? undefined)
const id = z.string()

/** Events of CopilotKit's own runtime, which agents on CrewAI send. */
export const runtimeEvent = z.discriminatedUnion('type', [
  z.object({ type: z.literal('TextMessageStart'), messageId: id }),
  z.object({ type: z.literal('TextMessageContent'), messageId: id, content: z.string() }),
  z.object({ type: z.literal('TextMessageEnd'), messageId: id }),
  z.object({
    type: z.literal('ActionExecutionStart'),
    actionExecutionId: id,
    actionName: z.string(),
    parentMessageId: maybe(id),
  }),
  z.object({ type: z.literal('ActionExecutionArgs'), actionExecutionId: id, args: z.string() }),
  z.object({ type: z.literal('ActionExecutionEnd'), actionExecutionId: id }),
  z.object({
    type: z.literal('ActionExecutionResult'),
    actionExecutionId: id,
    result: z.unknown(),
  }),
  z.object({
    type: z.literal('AgentStateMessage'),
    state: z.unknown(),
    nodeName: maybe(z.string()),
  }),
  z.object({
    type: z.literal('MetaEvent'),
    name: z.string(),
    value: z.unknown().optional(),
    data: z.unknown().optional(),
  }),
  z.object({ type: z.literal('RunError'), error: z.unknown() }),
  z.object({ type: z.literal('NodeStarted'), node_name: z.string() }),
  z.object({ type: z.literal('NodeFinished'), node_name: z.string() }),
])

export const chunk = z.looseObject({
  id: maybe(id),
  content: z.unknown(),
  tool_call_chunks: maybe(
    z.array(
      z.looseObject({
        id: maybe(id),
        name: maybe(z.string()),
        args: maybe(z.string()),
        index: z.unknown(),
      }),
    ),
  ),
})
/** Events of LangGraph as its Python library streams them, and a few of CopilotKit among them. */
export const graphEvent = z.looseObject({
  event: z.string(),
  name: maybe(z.string()),
  data: z.unknown().optional(),
  value: z.unknown().optional(),
  state: z.unknown().optional(),
  node_name: maybe(z.string()),
  active: maybe(z.boolean()),
  metadata: maybe(z.record(z.string(), z.unknown())),
})
export type GraphEvent = z.output<typeof graphEvent>

export type RuntimeEvent = z.output<typeof runtimeEvent>

/** Kinds of events that we know; those of newer versions are passed over. */
export const known = new Set<string>(runtimeEvent.options.map(({ shape }) => shape.type.value))

export function read<T>(schema: z.ZodType<T>, value: unknown): T {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  const { path, message } = parsed.error.issues[0]!
  throw wrong(`an event: ${path.join('.')}: ${message}`)
}
