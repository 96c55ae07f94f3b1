import type { AgentEvent } from '../../core/agent.ts'
import { applyPatch, type Operation } from '../../lib/json-patch.ts'

/** Milliseconds between two states that are written down, while nothing else is. */
const every = 200

/** The agent's state as a remote changes it: each is written whole, so not every change is. */
export class Changes {
  #value: unknown
  #dirty = false
  #writtenAt = 0

  constructor(value: unknown) {
    this.#value = value
  }

  *set(value: unknown): Generator<AgentEvent> {
    this.#value = value
    this.#dirty = true
    yield* this.written()
  }

  /** A patch that does not fit is passed over, as AG-UI's own clients do. */
  *patch(operations: readonly Operation[]): Generator<AgentEvent> {
    this.#value = patched(this.#value ?? {}, operations)
    this.#dirty = true
    if (performance.now() - this.#writtenAt >= every) yield* this.written()
  }

  *written(): Generator<AgentEvent> {
    if (!this.#dirty) return
    this.#dirty = false
    this.#writtenAt = performance.now()
    yield { type: 'state', value: this.#value }
  }
}

/** The value after a patch; the value itself if the patch does not fit or is too large. */
export function patched(value: unknown, operations: readonly Operation[]): unknown {
  try {
    return applyPatch(value, operations)
  } catch {
    return value
  }
}
