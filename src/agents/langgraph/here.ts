import { AsyncLocalStorage } from 'node:async_hooks'
import type { AgentContext, AgentEvent } from '../../core/agent.ts'
import type { Message } from '../../core/messages.ts'

/** What the nodes of a graph find of the leg that runs them. */
export interface Here {
  readonly ctx: AgentContext
  /** Resolves when it was taken, and is in order before all that comes later. */
  say(event: AgentEvent): Promise<void>
  /** Shows a state, as far as it may be shown, over what is shown already. */
  sayState(state: object): Promise<void>
  /** A text, shown in pieces of the right size, and kept. */
  sayText(id: string, text: string): Promise<void>
  /** Something through the ledger. When it must wait for people, the graph is interrupted here. */
  through<T>(work: () => Promise<T>): Promise<T>
  /** Where the node stands, for its next model call: the same when it is run again. */
  place(): Promise<string>
  /** Answers of this leg by their place: what is written of them may not be read yet. */
  readonly answers: Map<string, Message>
  /** Model calls that we make: what LangChain tells of them is not news. */
  readonly ours: Set<string>
}

const storage = new AsyncLocalStorage<Here>()

export const runHere = <T>(here: Here, work: () => T): T => storage.run(here, work)

/** Fails closed: outside of a leg nothing is governed. */
export function findHere(what: string): Here {
  const here = storage.getStore()
  if (here) return here
  throw new Error(`${what} works only inside of a graph that Handrail runs.`)
}
