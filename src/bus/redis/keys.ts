import { createHash } from 'node:crypto'

/**
 * A thread's id as a part of a key, a channel or a job's id. Minted ids stay readable; any other,
 * which may be a client's own and hold anything, becomes its digest, so that no two are ever one.
 */
export function keyOf(id: string): string {
  if (/^[A-Za-z0-9_-]{1,64}$/.test(id)) return id
  // JSON keeps halves of pairs apart, which UTF-8 would make the same.
  return `~${createHash('sha256').update(JSON.stringify(id)).digest('base64url')}`
}
