/** What rxjs calls an Observable, as far as we need it. */
export interface Observed<T> {
  subscribe(observer: {
    next: (value: T) => void
    error: (error: unknown) => void
    complete: () => void
  }): { unsubscribe(): void }
}

/** Values that may wait before whoever makes them should wait too. */
const highWater = 1_000

/** A library's Observable as an iterator, and a way to slow down what feeds it. */
export function observe<T>(source: Observed<T>, signal: AbortSignal) {
  const waiting: T[] = []
  let over: { error?: unknown } | undefined
  let wake = () => {}
  let room = () => {}

  async function* values(): AsyncGenerator<T, void, undefined> {
    const stop = () => {
      over ??= { error: signal.reason }
      wake()
    }
    signal.addEventListener('abort', stop, { once: true })
    const subscription = source.subscribe({
      next: (value) => {
        waiting.push(value)
        wake()
      },
      error: (error) => {
        over ??= { error }
        wake()
      },
      complete: () => {
        over ??= {}
        wake()
      },
    })
    try {
      for (;;) {
        signal.throwIfAborted()
        while (waiting.length > 0) {
          yield* waiting.splice(0)
          room()
        }
        if (over && 'error' in over) throw over.error
        if (over) return
        await new Promise<void>((resolve) => {
          wake = resolve
          if (waiting.length > 0 || over) resolve()
        })
      }
    } finally {
      signal.removeEventListener('abort', stop)
      subscription.unsubscribe()
      waiting.length = 0
      over ??= {}
      room()
    }
  }

  return {
    values: values(),
    /** Resolves when there is room for more. */
    async room(): Promise<void> {
      while (waiting.length > highWater && !over)
        await new Promise<void>((resolve) => {
          room = resolve
        })
    },
  }
}
