import { longestId } from './messages.ts'

/**
 * Whose a call id is among the answers that a leg is writing side by side. Some providers use ids again, in a later
 * message or in another agent's; on a thread each names one call, or an answer to one would count for both.
 */
export class CallIds {
  readonly #owners = new Map<string, string>()

  /** The id, or one made of it when another message has it. From now on it is that message's. */
  take(callId: string, messageId: string, isTaken: (callId: string) => boolean): string {
    const free = (id: string) => !isTaken(id) && (this.#owners.get(id) ?? messageId) === messageId
    let own = callId
    for (let n = 2; !free(own); n++) own = `${callId.slice(0, longestId - 8)}_${n}`
    this.#owners.set(own, messageId)
    return own
  }

  /** The message came to nothing. */
  release(messageId: string): void {
    for (const [callId, owner] of this.#owners) if (owner === messageId) this.#owners.delete(callId)
  }
}
