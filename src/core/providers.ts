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

/** What one server knows of the providers it calls. */
export class Providers {
  readonly #known = new Map<string, Provider>()
  readonly #clock: Clock
  readonly #rules: ProviderRules

  constructor(clock: Clock, rules: Partial<ProviderRules> = {}) {
    this.#clock = clock
    this.#rules = { ...defaultProviderRules, ...rules }
  }

  of(name: string): Provider {
    let provider = this.#known.get(name)
    if (!provider) {
      provider = new Provider(this.#clock, this.#rules)
      this.#known.set(name, provider)
    }
    return provider
  }

  /** Providers by name, and whether their circuit is open. */
  *states(): Iterable<[name: string, isOpen: boolean]> {
    for (const [name, provider] of this.#known) yield [name, provider.isOpen]
  }
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
