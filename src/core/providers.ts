import { sha256 } from '../lib/canonical.ts'
import type { Clock } from '../lib/clock.ts'
import { RuntimeError } from './errors.ts'

export interface ProviderRules {
  /** Calls to one provider at once, how many more may wait, and how many milliseconds. */
  concurrent: number
  waiting: number
  patience: number
  /** Its circuit opens after so many failures in a row within so many milliseconds, for so many. */
  failures: number
  within: number
  rest: number
}

export const defaultProviderRules: ProviderRules = {
  concurrent: 64,
  waiting: 1_000,
  patience: 60_000,
  failures: 5,
  within: 60_000,
  rest: 30_000,
}

/** Failures that say that the provider is not there; what it answers, even a refusal, says it is. */
const outages = new Set(['network', 'model_overloaded', 'model_timeout', 'stream_cut'])

/** One call's way in. It is left once, with what went wrong, or with nothing. */
export interface Pass {
  leave(outcome: RuntimeError | 'answered' | 'stopped'): void
}

/** The key that a call is made with: the operator's, by its digest, or the client's own. */
export interface Credential {
  owner: 'operator' | 'client'
  key: string
}

/** Gates of client keys that are kept. Idle ones make room; one that is new begins closed. */
const maxClientGates = 1_000

/**
 * The gates of this server: one for each provider and credential, because a key that fails or is throttled
 * says nothing about the other keys. Credentials are kept as salted digests only.
 */
export class Providers {
  readonly #operators = new Map<string, Gate>()
  readonly #clients = new Map<string, Gate>()
  readonly #salt = crypto.randomUUID()
  readonly #clock: Clock
  readonly #rules: ProviderRules

  constructor(clock: Clock, rules: Partial<ProviderRules> = {}) {
    this.#clock = clock
    this.#rules = { ...defaultProviderRules, ...rules }
  }

  of(name: string, credential?: Credential): Provider {
    const gates = credential?.owner === 'client' ? this.#clients : this.#operators
    const key = credential ? sha256(JSON.stringify([this.#salt, name, credential.key])) : name
    const gate = gates.get(key) ?? { name, provider: new Provider(this.#clock, this.#rules) }
    gates.delete(key)
    gates.set(key, gate) // the least recently used is first
    if (this.#clients.size > maxClientGates) this.#forgetIdle(gate)
    return gate.provider
  }

  #forgetIdle(used: Gate): void {
    for (const [key, gate] of this.#clients) {
      if (gate === used || !gate.provider.isIdle) continue
      this.#clients.delete(key)
      return
    }
  }

  /** Providers by name: whether a circuit of the operator's keys is open, and how many of clients' keys are. */
  states(): Map<string, { isOpen: boolean; openClients: number }> {
    const states = new Map<string, { isOpen: boolean; openClients: number }>()
    const stateOf = (name: string) => {
      const state = states.get(name) ?? { isOpen: false, openClients: 0 }
      states.set(name, state)
      return state
    }
    for (const { name, provider } of this.#operators.values())
      stateOf(name).isOpen ||= provider.isOpen
    for (const { name, provider } of this.#clients.values())
      stateOf(name).openClients += provider.isOpen ? 1 : 0
    return states
  }
}

interface Gate {
  name: string
  provider: Provider
}

class Provider {
  readonly #clock: Clock
  readonly #rules: ProviderRules
  #inside = 0
  readonly #line = new Set<() => void>()
  /** When it failed, since it last answered. */
  #failed: number[] = []
  #openUntil = 0
  #probing = false

  constructor(clock: Clock, rules: ProviderRules) {
    this.#clock = clock
    this.#rules = rules
  }

  get isOpen(): boolean {
    return this.#openUntil > 0
  }

  get isIdle(): boolean {
    return this.#inside === 0 && this.#line.size === 0
  }

  /** Waits for room. Rejects at once while the circuit is open, except for one call that tries it. */
  async enter(signal: AbortSignal): Promise<Pass> {
    this.#refuseWhileOpen()
    if (this.#inside >= this.#rules.concurrent) {
      await this.#room(signal)
      this.#inside-- // the place was handed on: it is taken again below, unless the circuit opened
      this.#refuseWhileOpen()
    }
    this.#inside++
    const probe = this.isOpen
    if (probe) this.#probing = true
    let left = false
    return {
      leave: (outcome) => {
        if (left) return
        left = true
        if (probe) this.#probing = false
        this.#hear(outcome, probe)
        this.#handOn()
      },
    }
  }

  #refuseWhileOpen(): void {
    if (!this.isOpen) return
    const left = this.#openUntil - this.#clock.monotonic()
    if (left <= 0 && !this.#probing) return
    const retryAfter = Math.max(1, Math.ceil(left / 1_000))
    const message = `The model provider has failed too often lately. It is tried again in ${retryAfter} s.`
    this.#next()
    throw new RuntimeError('model_unavailable', message, { retryAfter })
  }

  #hear(outcome: RuntimeError | 'answered' | 'stopped', probe: boolean): void {
    if (outcome === 'stopped') return
    if (outcome === 'answered' || !outages.has(outcome.code)) {
      this.#failed = []
      this.#openUntil = 0
      return
    }
    const now = this.#clock.monotonic()
    this.#failed = [...this.#failed.filter((at) => at > now - this.#rules.within), now]
    if (probe || this.#failed.length >= this.#rules.failures)
      this.#openUntil = now + this.#rules.rest
  }

  async #room(signal: AbortSignal): Promise<void> {
    const { waiting, patience } = this.#rules
    if (this.#line.size >= waiting) throw new RuntimeError('model_busy')
    const over = new AbortController()
    const stop = AbortSignal.any([signal, over.signal])
    let go: (() => void) | undefined
    const turn = new Promise<'turn'>((resolve) => {
      go = () => resolve('turn')
      this.#line.add(go)
    })
    const late = this.#clock.sleep(patience, stop).then(() => 'late' as const)
    try {
      if ((await Promise.race([turn, late])) === 'late') throw new RuntimeError('model_busy')
    } catch (error) {
      // Its turn may have come in the same moment: then it is the next one's.
      if (!this.#line.delete(go!)) this.#handOn()
      throw error
    } finally {
      over.abort()
      late.catch(() => {})
    }
  }

  /** A place that is left goes to who waits longest. */
  #handOn(): void {
    this.#inside--
    this.#next()
  }

  #next(): void {
    if (this.#inside >= this.#rules.concurrent) return
    for (const go of this.#line) {
      this.#line.delete(go)
      this.#inside++
      go()
      return
    }
  }
}
