import type { AgentEvent } from './agent.ts'
import type { EffectRecord, ThreadState } from './state.ts'

/** Characters of JSON that an answer may have to be offered as evidence. */
const evidenceLimit = 4_000_000

/** Messages of a leg and the last state it set. The next leg records them if this one cannot. */
export class Transcript {
  #messages: AgentEvent[] = []
  #length = 0
  #state: AgentEvent | undefined

  /** Yields the events and remembers those that matter, up to `evidenceLimit`. */
  async *of(
    events: AsyncGenerator<AgentEvent, string, undefined>,
  ): AsyncGenerator<AgentEvent, string, undefined> {
    for (;;) {
      const { done, value } = await events.next()
      if (done) return value
      if (value.type === 'message') this.#add(value)
      if (value.type === 'state') this.#state = value
      yield value
    }
  }

  #add(message: AgentEvent): void {
    if (this.#isTooLong) return
    this.#length += JSON.stringify(message).length
    if (this.#isTooLong) this.#messages = []
    else this.#messages.push(message)
  }

  get #isTooLong(): boolean {
    return this.#length > evidenceLimit
  }

  /** The events, the state first. Undefined if they cannot be recorded late: too long, or a state without a message. */
  events(): AgentEvent[] | undefined {
    if (this.#isTooLong || (this.#state && this.#messages.length === 0)) return undefined
    const events = [...(this.#state ? [this.#state] : []), ...this.#messages]
    return JSON.stringify(events).length > evidenceLimit ? undefined : events
  }
}

/** Events of a late-recorded leg that the thread lacks. Empty if the thread has all of its messages. */
export function unrecordedOf(
  { unrecorded = [] }: EffectRecord,
  { messages }: ThreadState,
): readonly AgentEvent[] {
  const isOpen = (event: AgentEvent) => event.type === 'message' && !messages.has(event.message.id)
  if (!unrecorded.some(isOpen)) return []
  return unrecorded.filter((event) => event.type !== 'message' || isOpen(event))
}
