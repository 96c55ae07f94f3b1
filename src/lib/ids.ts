import { randomFillSync } from 'node:crypto'

export type NewId = (prefix: string) => string

const alphabet = '0123456789abcdefghjkmnpqrstvwxyz'

/** Random bytes in store: asking for sixteen at a time costs more than all the rest of an id. */
const chances = Buffer.alloc(4096)
let used = chances.length

/** Ids that sort by the time they were made: ten characters of time, sixteen of chance. */
export function newId(prefix: string, now = Date.now()): string {
  let time = ''
  for (let rest = now, n = 0; n < 10; n++) {
    time = alphabet[rest % 32] + time
    rest = Math.floor(rest / 32)
  }
  let chance = ''
  if (used === chances.length) {
    randomFillSync(chances)
    used = 0
  }
  for (let n = 0; n < 16; n++) chance += alphabet[chances[used++]! & 31]
  return `${prefix}_${time}${chance}`
}
