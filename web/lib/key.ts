/**
 * The API key of a runtime that wants one. It is kept for this tab only: closing it signs out, and no
 * other page of this origin can read it later.
 */
const name = 'handrail.key'

export function readKey(): string | null {
  return typeof sessionStorage === 'undefined' ? null : sessionStorage.getItem(name)
}

export function writeKey(key: string | null): void {
  if (key === null) sessionStorage.removeItem(name)
  else sessionStorage.setItem(name, key)
}

export function keyHeaders(): Record<string, string> {
  const key = readKey()
  return key === null ? {} : { authorization: `Bearer ${key}` }
}
