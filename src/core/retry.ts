import type { RuntimeError } from './errors.ts'

export interface RetryRule {
  /** How often it is tried in all. */
  attempts: number
  /** Milliseconds before the second try, and how much longer before each one after. */
  first: number
  factor: number
  most: number
  /** Failed calls in one run after which none is tried again. */
  perRun: number
  /** After a rate limit that does not say how long. */
  rateLimit: number
}

export const defaultRetry: RetryRule = {
  attempts: 3,
  first: 1_000,
  factor: 2,
  most: 60_000,
  perRun: 20,
  rateLimit: 60_000,
}

type Failed = Pick<RuntimeError, 'code' | 'retryable'> & Partial<Pick<RuntimeError, 'retryAfter'>>

/** Milliseconds to wait after this failed attempt, or undefined when trying again is no use. */
export function pauseAfter(error: Failed, attempt: number, rule: RetryRule, random: number) {
  if (!error.retryable || attempt >= rule.attempts) return undefined
  if (error.retryAfter !== undefined) return Math.min(error.retryAfter * 1_000, rule.most)
  if (error.code === 'rate_limit') return rule.rateLimit
  const pause = Math.min(rule.first * rule.factor ** (attempt - 1), rule.most)
  return Math.round(pause * (0.8 + 0.4 * random)) // many clients must not come back together
}
