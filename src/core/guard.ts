import type { Message } from './messages.ts'
import type { Model, ModelEvent, ModelRequest } from './model.ts'

/** Why something may not be said, shown or done. */
export interface Denial {
  /** The rule that says so, as the journal names it. */
  rule: string
  /** Told to whoever is refused. */
  reason: string
}

/** What may be said to agents, by them, and done for them. Rules only; what they lead to is core's. */
export interface Guard {
  /**
   * Why a message may not be said. Rejects with `guardrail_away` when that cannot be found out and the
   * operator wants nothing unchecked to pass.
   */
  input(message: Message, about: Said): Promise<Denial | undefined>
  /** For each message that a model writes; undefined where there are no such rules. */
  output?(): OutputWatch
  /** Why a tool may not be called with this. */
  arguments?(tool: string, input: unknown): Denial | undefined
  /** What is denied is not written down, only that it was. */
  readonly redacts?: boolean
}

export interface Said {
  /** What was said before, for those who judge by the context. */
  before(): readonly Message[]
  /** The client's own rules: they can only tighten those of the operator. */
  client?: ClientRules
  /** One call of a model that counts: gives the text that it answers. */
  ask(model: Model, request: ModelRequest): Promise<string>
  /** History that a client brings: judged by what costs nothing. */
  imported?: boolean
}

/** Words or topics: what must be among what is said, if any, and what must not. */
export interface ClientRules {
  allow: readonly string[]
  deny: readonly string[]
}

/** Lets through what is sure to be allowed. Throws `guardrail` for what is not. */
export interface OutputWatch {
  take(event: ModelEvent): ModelEvent[]
  /** The message is whole: what was held back. */
  end(): ModelEvent[]
}

/** The same model, of which nothing is shown that the rules forbid. */
export function guardedModel(model: Model, guard: Guard | undefined): Model {
  if (!guard?.output) return model
  const stream = async function* (...call: Parameters<Model['stream']>) {
    const watch = guard.output!()
    for await (const event of model.stream(...call)) yield* watch.take(event)
    yield* watch.end()
  }
  return new Proxy(model, {
    get(target, key) {
      if (key === 'stream') return stream
      const value = Reflect.get(target, key, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}
