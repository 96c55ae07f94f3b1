import type { BaseEvent } from '@ag-ui/client'
import {
  EventSchema,
  type MessagesSnapshotEventSchema,
  type ReasoningMessageChunkEventSchema,
  type RunFinishedEventSchema,
  type TextMessageChunkEventSchema,
  type ToolCallChunkEventSchema,
} from '@ag-ui/core/schemas'
import type { z } from 'zod'
import { wrong } from '../scribe.ts'

export type AguiEvent = z.output<typeof EventSchema>
export type Finished = z.output<typeof RunFinishedEventSchema>
export type Snapshot = z.output<typeof MessagesSnapshotEventSchema>
export type Chunk =
  | z.output<typeof TextMessageChunkEventSchema>
  | z.output<typeof ReasoningMessageChunkEventSchema>
  | z.output<typeof ToolCallChunkEventSchema>

/** Old names of reasoning; they have no ids. */
const thinking: Record<string, string> = {
  THINKING_START: 'REASONING_START',
  THINKING_END: 'REASONING_END',
  THINKING_TEXT_MESSAGE_START: 'REASONING_MESSAGE_START',
  THINKING_TEXT_MESSAGE_CONTENT: 'REASONING_MESSAGE_CONTENT',
  THINKING_TEXT_MESSAGE_END: 'REASONING_MESSAGE_END',
}

const known = new Set<string>(
  EventSchema.options.map(({ shape }) => String(shape.type.def.values[0])),
)

/** Fields whose value may be `null`; elsewhere it stands for nothing, as Python servers write it. */
const mayBeNull = new Set(['value', 'snapshot', 'event'])

/** An event of a stranger, checked. Gives nothing for those of protocols newer than ours. */
export function readEvent(given: BaseEvent): AguiEvent | undefined {
  const type = thinking[given.type] ?? given.type
  if (!known.has(type)) return undefined
  const event: Record<string, unknown> = { type }
  for (const [name, value] of Object.entries(given)) {
    // Neither is shown to anybody, and clocks of others are none of our business.
    if (name === 'type' || name === 'rawEvent' || name === 'timestamp') continue
    if (value !== null || mayBeNull.has(name)) event[name] = value
  }
  if (type !== given.type) event.messageId = 'thinking'
  if (type === 'REASONING_MESSAGE_START') event.role = 'reasoning'
  const read = EventSchema.safeParse(event)
  if (read.success) return read.data
  const { path, message } = read.error.issues[0]!
  throw wrong(`${type}.${path.join('.')}: ${message}`)
}
