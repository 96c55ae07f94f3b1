import { z } from 'zod'

/** A page of tools. What each of them is, is looked at one by one: one that is odd takes no others away. */
export const pageSchema = z.looseObject({
  tools: z.array(z.unknown()),
  nextCursor: z.string().optional(),
})

const hint = z.boolean().optional()
const toolSchema = z.looseObject({
  name: z.string().min(1),
  title: z.string().optional(),
  description: z.string().optional(),
  inputSchema: z.looseObject({ type: z.literal('object') }),
  annotations: z
    .looseObject({ readOnlyHint: hint, idempotentHint: hint, destructiveHint: hint })
    .optional(),
})

/** A tool as its server describes it. */
export type McpTool = z.infer<typeof toolSchema>

/** Throws with what is wrong with it. */
export function readTool(listed: unknown): McpTool {
  const read = toolSchema.safeParse(listed)
  if (read.success) return read.data
  const { path, message } = read.error.issues[0]!
  throw new Error(`${path.join('.') || 'it'}: ${message}`)
}

/** What to call one that is listed, whatever it is. */
export function nameOf(listed: unknown): string {
  const { name } = Object(listed) as { name?: unknown }
  return typeof name === 'string' ? name : ''
}
