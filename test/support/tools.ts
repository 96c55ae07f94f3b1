import { z } from 'zod'
import { defineTool, type Tool } from '../../src/core/tool.ts'
import type { Frame } from './chats.ts'

/** A tool that asks first, and one that does not; each keeps a list of what it was run with. */
export function tools() {
  const sent: { to: string; amount: number }[] = []
  const looked: string[] = []
  const send = defineTool({
    name: 'send',
    description: 'Sends money.',
    schema: z.strictObject({ to: z.string().min(1), amount: z.number().max(100) }),
    access: 'write',
    describe: ({ to, amount }) => `Send ${amount} to ${to}`,
    run: async (input) => {
      sent.push(input)
      return `sent ${input.amount} to ${input.to}`
    },
  })
  const look = defineTool({
    name: 'look',
    description: 'Looks something up.',
    schema: z.strictObject({ at: z.string() }),
    access: 'read',
    run: async ({ at }) => {
      looked.push(at)
      return `saw ${at}`
    },
  })
  return { sent, looked, send, look, all: [send, look] satisfies Tool[] }
}

export const names = (frames: readonly Frame[]) => frames.map(({ event }) => event)

/** The frames of the seed; the pieces in between may be left out by any client. */
export const seedFrames = (frames: readonly Frame[]) =>
  frames.filter(({ event }) => !event.endsWith('_delta') && event !== 'tool_output')

export const find = (frames: readonly Frame[], event: string) =>
  frames.find((frame) => frame.event === event)!.data

/** The messages of a model request as `role: text`, calls as `name(input)`. */
export function said(request: { messages: readonly unknown[] } | undefined): string[] {
  type Part = { type: string; text?: string; name?: string; input?: string }
  const messages = (request?.messages ?? []) as { role: string; parts: Part[] }[]
  return messages.map(({ role, parts }) => {
    const words = parts.map((part) =>
      part.type === 'call' ? `${part.name}(${part.input})` : (part.text ?? ''),
    )
    return `${role}: ${words.join('')}`
  })
}

/** A refusal: its status and what it says. */
// biome-ignore lint/suspicious/noExplicitAny: the wire's JSON, looked into by assertions
export async function problem(response: Response): Promise<any> {
  const { error } = (await response.json()) as { error: object }
  return { http: response.status, ...error }
}
