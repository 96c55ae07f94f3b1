import { z } from 'zod'
import { atOnce } from '../lib/at-once.ts'
import { type Card, cardOf } from './card.ts'
import type { Bench } from './effects.ts'
import { limited } from './limited.ts'
import { type Message, textOf } from './messages.ts'
import { sentence } from './sentence.ts'
import type { Tool } from './tool.ts'

/** Milliseconds a tool has to show what would change. */
const previewLimit = 2_000

export interface Showing {
  tool: Tool
  input: unknown
  agent: string
  /** The message that the call is in. */
  messageId: string
  /** An effect in doubt: when it began. */
  began?: number
}

/** The card of a call. What a tool offers helps to decide; where that fails, one decides without. */
export async function showCall(showing: Showing, bench: Bench): Promise<Card> {
  const { tool, input, agent, messageId, began } = showing
  const doubt = began === undefined ? '' : 'Did this happen? '
  const said = bench.messages.find(({ id }) => id === messageId)
  // What would change is of no use once it may have.
  const preview =
    began === undefined
      ? await limited(previewLimit, bench, async (signal) =>
          previewSchema.parse(await tool.preview?.(input, signal)),
        )
      : undefined
  return cardOf({
    title: doubt + sentence(tool, input),
    tool,
    agent,
    input,
    target: offered(z.string(), () => tool.target?.(input)),
    risk: offered(riskSchema, () => tool.risk?.(input)),
    preview,
    ...(said && { said: wordsOf(said) }),
    ...(began !== undefined && { began }),
  })
}

/** What the model wrote beside its calls: its thoughts, then its words. */
function wordsOf(message: Message): string {
  const thoughts = message.parts.flatMap((part) => (part.type === 'reasoning' ? part.text : []))
  return [...thoughts, textOf(message)].filter((text) => text.trim() !== '').join('\n\n')
}

const riskSchema = z.object({
  level: z.enum(['low', 'medium', 'high']),
  why: z.string().catch('The tool does not say why.'),
})
const previewSchema = z
  .discriminatedUnion('kind', [
    z.object({
      kind: z.literal('diff'),
      before: z.string().nullable().default(null),
      after: z.string(),
    }),
    z.object({ kind: z.enum(['code', 'text']), text: z.string() }),
  ])
  .optional()

/** Nothing, where what a tool says is of another kind: types are a promise that plain code does not make. */
function offered<T>(kind: z.ZodType<T>, help: () => unknown): T | undefined {
  return atOnce(() => kind.parse(atOnce(help))) as T | undefined
}
