import type { RunOptions } from './entries.ts'
import { ended } from './state.ts'
import type { Thread } from './thread.ts'

/** What a request brings for its run and nobody may write down: tokens, keys, passwords. */
export type Secrets = Pick<RunOptions, 'forwarded' | 'headers'>

const looksSecret = /authorization|cookie|token|secret|passw|credential|api[-_]?key|^bearer$/i

/** The options that may be kept, and what of them may not. */
export function splitSecrets(options: RunOptions): { options: RunOptions; secrets: Secrets } {
  const forwarded = split(options.forwarded ?? {})
  const headers = split(options.headers ?? {})
  return {
    options: {
      ...options,
      ...(options.forwarded && { forwarded: forwarded.open }),
      ...(options.headers && { headers: headers.open }),
    },
    secrets: { forwarded: forwarded.secret, headers: headers.secret },
  }
}

function split<T>(all: Record<string, T>) {
  const entries = Object.entries(all)
  return {
    open: Object.fromEntries(entries.filter(([name]) => !looksSecret.test(name))),
    secret: Object.fromEntries(entries.filter(([name]) => looksSecret.test(name))),
  }
}

/**
 * The secrets of runs that are under way, in memory only: a run that goes on after a restart, or on
 * another server, goes on without them until a request brings them again.
 */
export class RunSecrets {
  readonly #kept = new Map<string, Secrets>()
  readonly #limit: number

  constructor(limit = 10_000) {
    this.#limit = limit
  }

  /** Until the run ends, whichever server drives it then. */
  keep(thread: Thread, runId: string, secrets: Secrets): void {
    if (isEmpty(secrets.forwarded) && isEmpty(secrets.headers)) return
    const run = thread.state.runs.get(runId)
    if (!run || ended(run)) return
    const isNew = !this.#kept.delete(runId)
    this.#kept.set(runId, secrets)
    const [oldest] = this.#kept.keys()
    if (this.#kept.size > this.#limit && oldest !== undefined) this.#kept.delete(oldest)
    if (!isNew) return
    const unlisten = thread.listen(() => {
      if (!ended(run)) return
      this.#kept.delete(runId)
      unlisten()
    })
  }

  /** A run's options with its secrets among them. */
  join(runId: string, options: RunOptions): RunOptions {
    const secrets = this.#kept.get(runId)
    if (!secrets) return options
    return {
      ...options,
      forwarded: { ...options.forwarded, ...secrets.forwarded },
      headers: { ...options.headers, ...secrets.headers },
    }
  }
}

const isEmpty = (one: object | undefined): boolean => !one || Object.keys(one).length === 0
