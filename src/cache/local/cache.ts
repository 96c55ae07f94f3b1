import type { Cache } from '../../core/store.ts'
import { type Clock, systemClock } from '../../lib/clock.ts'
import { heapShare } from '../../lib/heap.ts'
import { sweeping } from '../sweeping.ts'

export interface LocalCacheOptions {
  clock?: Clock
  log: { info(about: object, message: string): void }
  /** Values kept at most; the one set longest ago goes first. */
  limit?: number
  /** Characters of all of them at most. Default: a sixteenth of the heap's bytes. */
  size?: number
  /** Milliseconds between two looks for what is over. */
  sweepEvery?: number
}

/** Values in memory: the cache of a single server. */
export function localCache(options: LocalCacheOptions): Cache {
  const { clock = systemClock, log, limit = 10_000, sweepEvery = 60_000 } = options
  const { size: mostCharacters = heapShare(1 / 16) } = options
  /** In the order in which they were set. As text, so that nobody changes what another was given. */
  const kept = new Map<string, { until: number; text: string }>()
  let characters = 0
  const remove = (key: string): boolean => {
    characters -= kept.get(key)?.text.length ?? 0
    return kept.delete(key)
  }
  const stop = sweeping({
    clock,
    log,
    every: sweepEvery,
    async sweep(now) {
      let evicted = 0
      for (const [key, { until }] of kept) if (until <= now && remove(key)) evicted++
      return { evicted, kept: kept.size }
    },
  })

  return {
    async get(key) {
      const one = kept.get(key)
      return one && one.until > clock.now() ? (JSON.parse(one.text) as unknown) : undefined
    },
    async set(key, value, ttl) {
      const text = textOf(value)
      remove(key)
      if (text === undefined) return
      kept.set(key, { until: clock.now() + ttl, text })
      characters += text.length
      for (const oldest of kept.keys()) {
        if (kept.size <= limit && characters <= mostCharacters) break
        remove(oldest)
      }
    },
    async delete(key) {
      remove(key)
    },
    async close() {
      stop()
      kept.clear()
      characters = 0
    },
  }
}

/** Undefined for what JSON cannot hold. */
export function textOf(value: unknown): string | undefined {
  try {
    return JSON.stringify(value)
  } catch {
    return undefined
  }
}
