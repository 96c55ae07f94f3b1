import type { Clock } from './clock.ts'

/** `work`, at most once in `ms`: whoever asks before gets what it came to, or waits for it. */
export function paced<T>(
  work: () => Promise<T>,
  ms: number,
  clock: Pick<Clock, 'monotonic'>,
): () => Promise<T> {
  let last: Promise<T> | undefined
  /** When it ended. */
  let at: number | undefined
  const now = () => clock.monotonic()
  return () => {
    if (last && (at === undefined || now() - at < ms)) return last
    at = undefined
    last = work().finally(() => {
      at = now()
    })
    return last
  }
}
