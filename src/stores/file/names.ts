import { sha256 } from '../../lib/canonical.ts'

const longest = 180
const safe = /^[A-Za-z0-9_-][A-Za-z0-9_.-]*$/

/**
 * An id as the name of one file or folder. Different ids have different names, none of them leads
 * out of its folder, and ordinary ids stay readable.
 */
export function encodeName(id: string): string {
  if (safe.test(id) && id.length <= longest) return id
  if (id === '') return '%'
  // A lone surrogate has no UTF-8: two such ids would meet in the same replacement character.
  if (/\p{Surrogate}/u.test(id)) return `~${sha256(JSON.stringify(id))}`
  let name = ''
  for (const byte of Buffer.from(id)) {
    const char = String.fromCharCode(byte)
    const kept = /[A-Za-z0-9_-]/.test(char) || (char === '.' && name !== '')
    name += kept ? char : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`
  }
  if (name.length <= longest) return name
  return `${name.slice(0, 100).replace(/%.?$/, '')}~${sha256(JSON.stringify(id))}`
}

/** The id behind a name, where the name still has all of it. */
export function decodeName(name: string): string | undefined {
  if (name === '%') return ''
  if (name.includes('~')) return undefined
  try {
    return decodeURIComponent(name)
  } catch {
    return undefined
  }
}
