import { sha256 } from './canonical.ts'

const plain = /^[a-z0-9][a-z0-9_-]{0,63}$/
/** Windows reserves these names for devices. */
const device = /^(con|prn|aux|nul|com\d|lpt\d)$/
/** Characters of an id that stay readable in front of its digest. */
const readableLength = 40

/**
 * Returns the name of one directory for an id. Different ids get different names, also on file systems that
 * ignore case or normalize Unicode. The name has at most 105 ASCII characters, never leaves its parent
 * directory, and is never one of `taken`. Short lower-case ids keep their own name.
 */
export function directoryName(id: string, taken: ReadonlySet<string> = new Set()): string {
  if (plain.test(id) && !device.test(id) && !taken.has(id)) return id
  const readable = id
    .slice(0, readableLength)
    .toLowerCase()
    .replace(/[^a-z0-9_]+/g, '-')
    .slice(0, readableLength)
    .replace(/^-+/, '')
  // As JSON text, because a lone surrogate has no UTF-8: two ids would get the digest of the same bytes.
  let name = `${readable}~${sha256(JSON.stringify(id))}`
  while (taken.has(name)) name = `${readable}~${sha256(name)}`
  return name
}
