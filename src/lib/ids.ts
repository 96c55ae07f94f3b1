import { randomBytes } from 'node:crypto'

export type NewId = (prefix: string) => string

const alphabet = '0123456789abcdefghjkmnpqrstvwxyz'

/** Ids that sort by the time they were made: ten characters of time, sixteen of chance. */
export function newId(prefix: string, now = Date.now()): string {
  let time = ''
  for (let rest = now, n = 0; n < 10; n++) {
    time = alphabet[rest % 32] + time
    rest = Math.floor(rest / 32)
  }
  let chance = ''
  for (const byte of randomBytes(16)) chance += alphabet[byte & 31]
  return `${prefix}_${time}${chance}`
}
