import { z } from 'zod'
import type { AgentEvent, Piece } from './agent.ts'
import { bodies, type Draft, draft } from './entries.ts'
import { RuntimeError } from './errors.ts'
import { callsOf, longestId } from './messages.ts'
import { eventShapes } from './workflow-events.ts'

const word = z.string().min(1)
const step = z.object({ name: word, done: z.boolean() })
const activity = z.object({ id: word, activity: word, content: z.record(z.string(), z.unknown()) })
const anything = z.unknown()
/** Events by which the runtime tells what it did itself. An agent's own of that name is another. */
const ours: ReadonlySet<string> = new Set([
  ...['step.started', 'step.finished', 'activity', 'fallback'],
  ...['context', 'guardrail', 'governor', 'policy', 'returned'],
])
const kinds: ReadonlySet<unknown> = new Set<Piece['kind']>(['text', 'reasoning', 'input', 'output'])

/** A piece as it must be; there are many, so it is looked at by hand. */
export function checkPiece({ kind, id, text }: Piece): void {
  if (kinds.has(kind) && typeof id === 'string' && id !== '' && typeof text === 'string') return
  throw unfit('piece', 'needs a kind, an id and a text')
}

/**
 * What an agent says, as it is recorded. Agents are other people's code: what the journal could not be
 * read back with, or no client shows, fails the run before it is written.
 */
export function draftOf(event: Exclude<AgentEvent, { type: 'piece' }>, agent: string): Draft {
  switch (event.type) {
    case 'message': {
      const { message, for: whom = 'both' } = event
      const body = check(bodies['message.added'], { message, for: whom }, 'message')
      const ids = [message.id, ...callsOf(body.message).map(({ callId }) => callId)]
      const wrong = ids.find((id) => id === '' || id.length > longestId)
      if (wrong !== undefined) throw unfit('message', `ids have 1 to ${longestId} characters`)
      return draft('message.added', { message, for: whom })
    }
    case 'state':
      return draft('state.patched', { agent, value: event.value })
    case 'step': {
      const { name, done } = check(step, event, 'step')
      return draft('event', { name: done ? 'step.finished' : 'step.started', value: { name } })
    }
    case 'activity': {
      const { id, activity: type, content } = check(activity, event, 'activity')
      return draft('event', { name: 'activity', value: { id, type, content } })
    }
    case 'event': {
      const name = check(word, event.name, 'event.name')
      check(eventShapes.get(name) ?? anything, event.value, `event.value of ${name}`)
      return draft('event', { name: ours.has(name) ? `agent:${name}` : name, value: event.value })
    }
    default:
      throw unfit(String((event as { type?: unknown } | undefined)?.type), 'is no event of agents')
  }
}

function check<T>(schema: z.ZodType<T>, value: unknown, what: string): T {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  const [{ path, message } = { path: [], message: '' }] = parsed.error.issues
  throw unfit([what, ...path].join('.'), message)
}

const unfit = (what: string, problem: string) =>
  new RuntimeError('agent_failed', `The agent said what cannot be recorded: ${what}: ${problem}`)
