import type { BaseMessage } from '@langchain/core/messages'
import type { AgentContext, AgentEvent } from '../../core/agent.ts'
import { canonical } from '../../lib/canonical.ts'
import { idsIn, shown } from './input.ts'
import { fromLangChain } from './messages.ts'
import type { Settled } from './options.ts'

/** What a graph streams, as events of an agent. */
export class Telling {
  readonly #ctx: AgentContext
  readonly #options: Settled
  /** Messages that the thread has, or will have in a moment. */
  readonly #said: Set<string>
  /** Names of the steps that are open, by task. */
  readonly #steps = new Map<string, string>()
  /** What is shown, and what the graph itself last had. */
  #state: unknown
  #own: string | undefined

  constructor(ctx: AgentContext, options: Settled, values: Record<string, unknown> = {}) {
    this.#ctx = ctx
    this.#options = options
    this.#said = idsIn(values.messages)
    this.#state = ctx.state()
    if (!ctx.given()) this.#own = canonical(shown(values, options))
  }

  *take(path: readonly string[], mode: string, payload: unknown): Generator<AgentEvent> {
    if (mode === 'tasks') yield* this.#task(path, payload as Task)
    else if (mode === 'values' && path.length === 0) yield* this.values(Object(payload))
    else if (mode === 'custom') yield { type: 'event', name: 'custom', value: plain(payload) }
    else if (mode === 'updates' && this.#options.streamMode === 'full')
      yield {
        type: 'event',
        name: 'update',
        value: { path: namesOf(path), update: plain(payload) },
      }
  }

  /** New messages, then the state if it is another one. */
  *values(values: Record<string, unknown>): Generator<AgentEvent> {
    if ('__interrupt__' in values) return
    const list: unknown[] = Array.isArray(values.messages) ? values.messages : []
    for (const one of list) yield* this.message(one as BaseMessage)
    const now = shown(values, this.#options)
    const own = canonical(now)
    if (own !== this.#own) yield* this.state(now) // else what a node shows meanwhile stays
    this.#own = own
  }

  *state(value: Record<string, unknown>): Generator<AgentEvent> {
    const known = this.#state ?? {}
    if (canonical(value) === canonical(known)) return
    this.#state = value
    yield { type: 'state', value }
  }

  /** Shown over what is shown, until the graph's own state is another. */
  *over(part: object): Generator<AgentEvent> {
    yield* this.state({ ...Object(this.#state), ...shown(part, this.#options) })
  }

  *message(one: BaseMessage): Generator<AgentEvent> {
    const message = fromLangChain(one, '')
    if (!message || message.id === '' || message.role === 'system') return
    if (this.#said.has(message.id)) return
    this.#said.add(message.id)
    const known = this.#ctx.messages().some(({ id, callId }) => {
      return id === message.id || (callId !== undefined && callId === message.callId)
    })
    if (known) return
    // What a node says for the user is for models: a reader has said nothing of it.
    yield { type: 'message', message, for: message.role === 'user' ? 'model' : 'both' }
  }

  *#task(path: readonly string[], { id, name, ...task }: Task): Generator<AgentEvent> {
    if (!this.#options.tracing) return
    const open = this.#steps.get(id)
    if (!('result' in task || 'error' in task)) {
      if (open !== undefined) return
      const whole = [...namesOf(path), name].join('/')
      const names = new Set(this.#steps.values())
      let step = whole // several tasks may run the same node
      for (let n = 2; names.has(step); n++) step = `${whole} ${n}`
      this.#steps.set(id, step)
      yield { type: 'step', name: step, done: false }
    } else if (open !== undefined) {
      this.#steps.delete(id)
      yield { type: 'step', name: open, done: true }
    }
  }

  /** Steps that nobody will say the end of. */
  *rest(): Generator<AgentEvent> {
    for (const name of this.#steps.values()) yield { type: 'step', name, done: true }
    this.#steps.clear()
  }
}

interface Task {
  id: string
  name: string
  result?: unknown
  error?: unknown
}

/** The names of the nodes that a subgraph runs in, without the ids of their tasks. */
const namesOf = (path: readonly string[]): string[] =>
  path.map((part) => part.split(':')[0] ?? '').filter((name) => name !== '')

const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value ?? null))
