import { RuntimeError } from '../../core/errors.ts'

/** What is known of a statement that failed: nothing of it was done, or nobody knows. */
export type Outcome = 'undone' | 'unknown'

/** Nobody answered in time; the connection is gone by now. */
export class Silence extends Error {
  constructor() {
    super('Postgres did not answer in time')
    this.name = 'Silence'
  }
}

export const sqlState = (error: unknown): string | undefined => {
  const { code } = error as { code?: unknown }
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) ? code : undefined
}

/**
 * An error that Postgres sends for a statement means that it was rolled back, unless the connection
 * ends with it: a server that is stopped may have committed just before.
 */
export function outcomeOf(error: unknown): Outcome {
  const state = sqlState(error)
  return state === undefined || /^(08|57P)/.test(state) ? 'unknown' : 'undone'
}

/** Two transactions stood in each other's way, and the same again may well succeed. */
export const isCollision = (error: unknown): boolean =>
  ['40001', '40P01'].includes(sqlState(error) ?? '')

/** Not the primary any more, perhaps: another connection may lead to the one that is. */
export const isReadOnly = (error: unknown): boolean => sqlState(error) === '25006'

/**
 * Away, going, full, too slow, read-only, or not letting us in: 08 connection, 25006 read-only, 28 and
 * 3D refused, 53 resources, 55P03 lock, 57 operator, 58 system.
 */
const away = /^(08|25006|28|3D|53|55P03|57|58)/

/** What the caller is told: that storage is away, or that something is wrong with us. */
export function problemOf(error: unknown): RuntimeError {
  if (error instanceof RuntimeError) return error
  const state = sqlState(error)
  const details = { cause: error, retryAfter: 1 }
  return state === undefined || away.test(state) || isCollision(error)
    ? new RuntimeError('store_unavailable', undefined, details)
    : new RuntimeError('internal', undefined, { cause: error })
}
