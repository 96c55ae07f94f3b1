import { z } from 'zod'
import { atOnce } from '../lib/at-once.ts'
import { type Card, type CardParts, cardOf } from './card.ts'
import type { Bench } from './effects.ts'
import { ownerOf } from './leg.ts'
import { limited } from './limited.ts'
import { type Message, textOf } from './messages.ts'
import { readable } from './policy-rules.ts'
import { sentence } from './sentence.ts'
import type { Preview, Tool, ToolContext } from './tool.ts'

/** Milliseconds a tool has to show what would change. */
const previewLimit = 2_000

export interface Showing {
  tool: Tool
  input: unknown
  /** JSON that stands for the input; see `ParsedInput`. */
  shown: unknown
  agent: string
  /** The message that the call is in. */
  messageId: string
  /** An effect in doubt: when it began. */
  began?: number
  /** It was approved before, but for a state that has changed. */
  again?: boolean
}

export interface Shown {
  card: Card
  /** State that the preview was made from, where the tool says it. */
  precondition?: string
}

/** The card of a call. What a tool offers helps to decide; where that fails, one decides without. */
export async function showCall(showing: Showing, bench: Bench): Promise<Shown> {
  const { tool, input, messageId, began, again } = showing
  const owner = ownerOf(bench.leg)
  const doubt = began === undefined ? '' : 'Did this happen? '
  const said = bench.messages.find(({ id }) => id === messageId)
  // What would change is of no use once it may have.
  const preview = began === undefined ? await previewOf(tool, input, bench) : undefined
  const card = cardOf({
    ...partsOf(showing, owner),
    title: doubt + sentence(tool, input, owner),
    preview,
    ...(said && { said: wordsOf(said) }),
    ...(began !== undefined && { began }),
    ...(again && { again }),
  })
  const precondition = preview?.precondition
  return { card, ...(precondition !== undefined && { precondition }) }
}

/** The tool's preview of a call. Undefined if it has none, fails, takes too long or returns something else. */
export async function previewOf(
  tool: Tool,
  input: unknown,
  bench: Bench,
): Promise<Preview | undefined> {
  return await limited(previewLimit, bench, async (signal) =>
    previewSchema.parse(await tool.preview?.(input, signal, ownerOf(bench.leg))),
  )
}

type Call = Pick<Showing, 'tool' | 'input' | 'shown' | 'agent'>

/** The card of arguments that the approver wrote: without a preview, and without the model's words. */
export const cardOfEdit = (call: Call, owner: ToolContext): Card => cardOf(partsOf(call, owner))

const partsOf = ({ tool, input, shown, agent }: Call, owner: ToolContext): CardParts => ({
  title: sentence(tool, input, owner),
  tool,
  agent,
  input: shown,
  ...(input !== shown && { parsed: readable(input, shown) }),
  target: offered(z.string(), () => tool.target?.(input, owner)),
  risk: offered(riskSchema, () => tool.risk?.(input, owner)),
})

/** What the model wrote beside its calls: its thoughts, then its words. */
function wordsOf(message: Message): string {
  const thoughts = message.parts.flatMap((part) => (part.type === 'reasoning' ? part.text : []))
  return [...thoughts, textOf(message)].filter((text) => text.trim() !== '').join('\n\n')
}

const riskSchema = z.object({
  level: z.enum(['low', 'medium', 'high']),
  why: z.string().catch('The tool does not say why.'),
})
const precondition = z.string().max(500).optional()
const previewSchema: z.ZodType<Preview | undefined> = z
  .discriminatedUnion('kind', [
    z.object({
      kind: z.literal('diff'),
      before: z.string().nullable().default(null),
      after: z.string(),
      precondition,
    }),
    z.object({ kind: z.enum(['code', 'text']), text: z.string(), precondition }),
  ])
  .optional()

/** Nothing, where what a tool says is of another kind: types are a promise that plain code does not make. */
function offered<T>(kind: z.ZodType<T>, help: () => unknown): T | undefined {
  return atOnce(() => kind.parse(atOnce(help))) as T | undefined
}
