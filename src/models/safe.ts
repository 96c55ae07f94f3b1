import { sha256 } from '../lib/canonical.ts'

/** Half a surrogate pair is no Unicode, and providers refuse it. */
export const safeText = (text: string): string => text.toWellFormed()

const idLetters = /^[a-zA-Z0-9_-]{1,64}$/

/** The id itself where all providers take it, else one made of it: the same for call and result. */
export const safeCallId = (callId: string): string =>
  idLetters.test(callId) ? callId : `call_${sha256(callId).slice(0, 24)}`

/** A name that all providers take: letters, digits, `_` and `-`, a letter first, 64 at most. */
export function safeName(name: string): string {
  if (/^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$/.test(name)) return name
  const letters = name.replace(/[^a-zA-Z0-9_-]/g, '_').slice(0, 54)
  return `t_${letters}_${sha256(name).slice(0, 7)}`
}

/** The deepest input that is sent back as it was written. */
const deepest = 64

/** What the model wrote as the input of a call, as an object; what is none is shown to it as text. */
export function safeInput(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text.trim() === '' ? '{}' : text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value))
      return (isClean(value, 0) ? value : clean(value, 0)) as Record<string, unknown>
  } catch {
    // told below
  }
  return { not_valid: safeText(text.slice(0, 10_000)) }
}

/** Whether `clean` would change nothing. Copying a large input takes longer than parsing it. */
function isClean(value: unknown, depth: number): boolean {
  if (typeof value === 'string') return value.isWellFormed()
  if (typeof value !== 'object' || value === null) return true
  if (depth > deepest) return false
  if (Array.isArray(value)) return value.every((one) => isClean(one, depth + 1))
  for (const key in value) {
    if (key === '__proto__' || !key.isWellFormed()) return false
    if (!isClean((value as Record<string, unknown>)[key], depth + 1)) return false
  }
  return true
}

function clean(value: unknown, depth: number): unknown {
  if (typeof value === 'string') return safeText(value)
  if (typeof value !== 'object' || value === null) return value
  if (depth > deepest) throw new RangeError('too deep')
  if (Array.isArray(value)) return value.map((one) => clean(one, depth + 1))
  // Not by assignment: that would set the prototype where the key says so.
  const entries = Object.entries(value).filter(([key]) => key !== '__proto__')
  return Object.fromEntries(entries.map(([key, one]) => [safeText(key), clean(one, depth + 1)]))
}
