import type { Bench } from './effects.ts'

/**
 * What a tool offers besides running helps to decide; where it fails, or takes too long, one decides
 * without. The signal tells it to stop; whether it does is its own affair.
 */
export async function limited<T>(
  ms: number,
  { leg, clock }: Bench,
  help: (signal: AbortSignal) => Promise<T> | undefined,
): Promise<T | undefined> {
  const over = new AbortController()
  const late = clock.sleep(ms, AbortSignal.any([leg.signal, over.signal])).catch(() => {})
  const made = Promise.resolve()
    .then(() => help(over.signal))
    .catch(() => undefined)
  try {
    return await Promise.race([made, late.then(() => undefined)])
  } finally {
    over.abort('over')
  }
}
