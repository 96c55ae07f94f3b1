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

const event = 'handrail:refused'

/** The server does not take the key, or there is none any more: whoever shows the page asks for one. */
export const refused = () => window.dispatchEvent(new Event(event))

export function onRefused(tell: () => void): () => void {
  window.addEventListener(event, tell)
  return () => window.removeEventListener(event, tell)
}
