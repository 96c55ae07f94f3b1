import { randomUUID } from 'node:crypto'

export type NewId = (prefix: string) => string

const alphabet = '0123456789abcdefghjkmnpqrstvwxyz'

/** Ids that sort by the time they were made: ten characters of time, twenty (80 bits) of chance. */
export function newId(prefix: string, now = Date.now()): string {
  let time = ''
  for (let rest = now, n = 0; n < 10; n++) {
    time = alphabet[rest % 32] + time
    rest = Math.floor(rest / 32)
  }
  // Node keeps random bytes in store for these, which makes them cheap; two of its digits are fixed.
  const chance = randomUUID()
  return `${prefix}_${time}${chance.slice(0, 8)}${chance.slice(24)}`
}
