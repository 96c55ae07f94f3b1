import { createHash } from 'node:crypto'
import type { Agent, AgentContext, AgentEvent, Question } from '../../core/agent.ts'
import type { Answer } from '../../core/entries.ts'
import { RuntimeError } from '../../core/errors.ts'
import { validHistory } from '../../core/history.ts'
import { callsOf, type Message } from '../../core/messages.ts'
import type { ToolSpec } from '../../core/model.ts'
import type { Begun, Looked, RemoteUse } from '../../core/remote.ts'
import { isFrom } from './scribe.ts'

/** What is the same for every agent that runs elsewhere. */
export interface RemoteAgentOptions {
  name: string
  description?: string
  /** Running a leg twice is the same as running it once: after a crash it is simply run again. */
  idempotent?: boolean
  /** Our own tools that it may use besides those of the client, by name; each call by the policy. */
  tools?: readonly string[]
  /** Legs of one run, after which it fails rather than go on forever. Default 25. */
  maxSteps?: number
}

/** A question that the remote ended a leg with. */
export interface Interrupt {
  id: string
  kind: 'approval' | 'input'
  title: string
  schema?: unknown
  /** What it is about, for the person who decides. */
  input?: unknown
  /** Milliseconds since 1970. */
  expires?: number
}

/** How a leg ended, as the next one finds it: written down, so plain data. */
export interface LegEnd {
  interrupts: Interrupt[]
  /** Where the remote is: its thread, its checkpoint. */
  place: Record<string, unknown>
}

export interface LegRequest extends RemoteUse {
  ctx: AgentContext
  /** The branch, valid for every provider; and what of it the remote has not been told. */
  messages: readonly Message[]
  fresh: readonly Message[]
  tools: readonly ToolSpec[]
  /** Answers to all questions that the last leg ended with. */
  answers: readonly { interrupt: Interrupt; answer: Answer }[]
  /** Where the last leg left the remote, unless it has gone on elsewhere since. */
  place: Record<string, unknown> | undefined
  /** Where the last leg of this branch left it, whatever happened since. */
  fork: Record<string, unknown> | undefined
}

/** What each protocol has to know. */
export interface Protocol {
  /** Milliseconds for one leg. */
  timeout: number
  work(request: LegRequest): AsyncGenerator<AgentEvent, LegEnd, undefined>
  /** See `RemoteCall`. */
  look?(
    begun: Begun,
    place: Record<string, unknown> | undefined,
    signal: AbortSignal,
  ): Promise<Looked>
}

/** An agent that runs elsewhere: leg after leg there, and between them what has to be answered here. */
export function remoteAgent(options: RemoteAgentOptions, protocol: Protocol): Agent {
  const { name, description, idempotent = false, maxSteps = 25 } = options
  return {
    name,
    ...(description !== undefined && { description }),
    async *run(ctx: AgentContext): AsyncGenerator<AgentEvent> {
      const line = ctx.remote(name)
      const tools = toolsFor(ctx, options.tools ?? [])
      for (;;) {
        const last = line.last()
        const end = last && read(last.output)
        const answers: { interrupt: Interrupt; answer: Answer }[] = []
        if (last && end) {
          const calls = openCalls(ctx.messages(), name, tools)
          if (calls.length > 0) await ctx.call(calls)
          else if (end.interrupts.length === 0) return
          answers.push(...(await askAll(ctx, last.effectId, end.interrupts)))
        }
        if (line.legs() >= maxSteps) {
          const told = `The remote agent took ${maxSteps} steps and may not more.`
          throw new RuntimeError('too_many_steps', told)
        }
        const before = last ? undefined : line.before()
        const known = end ?? (before && read(before.output))
        const place = before?.tip === false ? undefined : known?.place
        // What it asks about may be a call that it is about to make: that has no result yet.
        const said = answers.length > 0 ? [...ctx.messages()] : validHistory(ctx.messages())
        const messages = await ctx.whole(said)
        const request = {
          ...{ ctx, messages, tools, answers, place, fork: known?.place },
          fresh: since(messages, known?.upTo),
        }
        yield* line.leg({
          title: titleOf(name, messages),
          input: {
            messages: messages.map(({ id }) => id),
            answers: answers.map((one) => one.answer),
          },
          idempotent,
          timeout: protocol.timeout,
          ...(protocol.look && {
            look: (begun, signal) => protocol.look!(begun, known?.place, signal),
          }),
          async *work(use) {
            const ended = yield* protocol.work({ ...request, ...use })
            return JSON.stringify({ ...ended, upTo: ctx.messages().at(-1)?.id })
          },
        })
      }
    },
  }
}

/** An id that a UUID is expected for, and that is the same for the same name. */
export function uuidOf(name: string): string {
  const hex = createHash('sha256').update(name).digest('hex')
  const variant = ((Number.parseInt(hex[16]!, 16) & 3) | 8).toString(16)
  const parts = [hex.slice(0, 8), hex.slice(8, 12), `8${hex.slice(13, 16)}`]
  return [...parts, variant + hex.slice(17, 20), hex.slice(20, 32)].join('-')
}

/** Also of a leg that a person said had happened: then there is nothing to read. */
function read(output: string): LegEnd & { upTo?: string } {
  const { interrupts = [], place = {}, upTo } = output === '' ? {} : JSON.parse(output)
  return { interrupts, place, upTo }
}

function toolsFor(ctx: AgentContext, own: readonly string[]): ToolSpec[] {
  const client = (ctx.options.clientTools ?? []).map(({ name }) => name)
  return ctx.tools.filter(({ name }) => client.includes(name) || own.includes(name))
}

/** Calls of the remote that are for us or the client to make. */
function openCalls(messages: readonly Message[], agent: string, tools: readonly ToolSpec[]) {
  const recent = messages.slice(messages.findLastIndex(({ role }) => role === 'user') + 1)
  const answered = new Set(recent.map(({ callId }) => callId))
  const ours = new Set(tools.map(({ name }) => name))
  return recent
    .filter((one) => isFrom(one, agent) && !one.partial)
    .flatMap(callsOf)
    .filter(({ callId, name }) => ours.has(name) && !answered.has(callId))
}

/** All questions of a leg, raised together; resolves when each has its answer. */
async function askAll(ctx: AgentContext, effectId: string, interrupts: readonly Interrupt[]) {
  const asked = interrupts.map((one) => ctx.ask(questionOf(one, effectId)))
  const answers = await Promise.allSettled(asked)
  return interrupts.map((interrupt, i) => {
    const answer = answers[i]!
    if (answer.status === 'rejected') throw answer.reason
    return { interrupt, answer: answer.value }
  })
}

function questionOf(interrupt: Interrupt, effectId: string): Question {
  const { id, kind, title, schema, input, expires } = interrupt
  return {
    key: `remote:${effectId}:${id}`,
    kind,
    title: title.slice(0, 2_000),
    ...(schema !== undefined && { schema }),
    ...(input !== undefined && { input }),
    ...(expires !== undefined && { timeout: Math.max(1_000, expires - Date.now()) }),
  }
}

function since(messages: readonly Message[], upTo: string | undefined): readonly Message[] {
  const at = upTo === undefined ? -1 : messages.findIndex(({ id }) => id === upTo)
  return messages.slice(at + 1)
}

function titleOf(name: string, messages: readonly Message[]): string {
  const said = messages.findLast(({ role }) => role === 'user')
  const part = said?.parts.find(({ type }) => type === 'text')
  const text = part?.type === 'text' ? part.text : ''
  return `${name} answers “${text.length > 80 ? `${text.slice(0, 79)}…` : text}”`
}
