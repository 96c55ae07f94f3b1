import type { Clock } from '../lib/clock.ts'
import { RuntimeError } from './errors.ts'

/** Milliseconds a model may be silent before its first event and between two, and talk in all. */
export interface Silence {
  first: number
  between: number
  total: number
}

export const defaultSilence: Silence = { first: 180_000, between: 90_000, total: 3_600_000 }

/**
 * The same events, unless the source is silent for too long: then `stop` is called and a typed
 * error thrown, whether the source listens or not. Time the reader takes does not count as silence.
 */
export async function* watched<T>(
  source: AsyncIterable<T>,
  limits: Silence,
  clock: Clock,
  stop: () => void,
): AsyncGenerator<T, void, undefined> {
  const iterator = source[Symbol.asyncIterator]()
  const began = clock.monotonic()
  let since = began
  let limit = limits.first
  let fail: ((error: RuntimeError) => void) | undefined

  let over = () => {}
  const watch = () => {
    const now = clock.monotonic()
    const due = Math.min(fail ? since + limit : now + limit, began + limits.total)
    if (!fail || now < due) {
      over = clock.timer(Math.max(1, Math.min(due - now, limits.between)), watch)
      return
    }
    const told = limit === limits.first ? 'did not begin to answer' : 'stopped answering'
    const all = now >= began + limits.total
    const sentence = all
      ? `The model was still answering after ${limits.total / 1_000} s.`
      : `The model ${told} for ${limit / 1_000} s.`
    stop()
    fail(new RuntimeError('model_timeout', sentence))
  }
  watch()

  // A promise of its own for each step: one that lives as long as the stream would collect them all.
  const next = () =>
    new Promise<IteratorResult<T>>((resolve, reject) => {
      since = clock.monotonic()
      fail = reject
      iterator.next().then(resolve, reject)
    })
  try {
    for (;;) {
      const { done, value } = await next()
      fail = undefined
      limit = limits.between
      if (done) return
      yield value
    }
  } finally {
    over()
    // Not awaited: a source that does not answer may not answer this either.
    Promise.resolve(iterator.return?.()).catch(() => {})
  }
}
