import fc from 'fast-check'
import type { Kept } from '../../src/core/store.ts'
import { sha256 } from '../../src/lib/canonical.ts'

/** What somebody with the files or the rows, and without the key, may do to a thread. */
export interface Tampering {
  what: string
  /** The thread afterwards, and the seqs near which it must be found. */
  on(thread: readonly Kept[]): { kept: Kept[]; from: number; to: number } | undefined
}

const place = fc.nat(1_000)
const char = fc.constantFrom(...'aZ09-_ "{}é')

export const anyTampering: fc.Arbitrary<Tampering> = fc.oneof(
  fc.record({ at: place, where: place, to: char }).map(bodyText),
  fc.record({ at: place, where: place, to: char }).map(bodyAndDigest),
  fc.record({ at: place, where: place, to: char }).map(value('envelope')),
  fc.record({ at: place, where: place, to: char }).map(value('marks')),
  fc.record({ at: place, renumber: fc.boolean() }).map(removed),
  fc.record({ at: place, other: place }).map(swapped),
  fc.record({ at: place, to: place }).map(copied),
  place.map(unlinked),
  place.map(inserted),
  fc.record({ at: place, other: place }).map(linkOfAnother),
)

type Change = { at: number; where: number; to: string }

function bodyText({ at, where, to }: Change): Tampering {
  return {
    what: `a character of the body of ${at}`,
    on: (thread) =>
      edit(thread, at, ({ entry, ...rest }) => {
        const body = replaced(entry.body, where, to)
        return body === entry.body ? undefined : { ...rest, entry: { ...entry, body } }
      }),
  }
}

function bodyAndDigest({ at, where, to }: Change): Tampering {
  return {
    what: `the body of ${at}, with its digest`,
    on: (thread) =>
      edit(thread, at, ({ entry, ...rest }) => {
        const body = replaced(entry.body, where, to)
        const digest = sha256(body)
        return body === entry.body ? undefined : { ...rest, entry: { ...entry, body, digest } }
      }),
  }
}

/** Some string or number of it, however deep. */
function value(part: 'envelope' | 'marks') {
  return ({ at, where, to }: Change): Tampering => ({
    what: `something in the ${part} of ${at}`,
    on: (thread) =>
      edit(thread, at, ({ entry, marks }) => {
        if (part === 'marks') {
          const other = marks && changed(marks, where, to)
          return other && { entry, marks: other }
        }
        const { seq, body, ...envelope } = entry
        const other = changed(envelope, where, to)
        return other && { entry: { ...other, seq, body }, ...(marks && { marks }) }
      }),
  })
}

function removed({ at, renumber }: { at: number; renumber: boolean }): Tampering {
  return {
    what: `${at} removed${renumber ? ' and its place closed' : ''}`,
    on(thread) {
      const n = at % thread.length
      if (n === thread.length - 1) return undefined // cut off: found by an exported head
      const rest = thread.filter((_, i) => i !== n)
      return { kept: renumber ? numbered(rest) : rest, from: n, to: n + 2 }
    },
  }
}

function swapped({ at, other }: { at: number; other: number }): Tampering {
  return {
    what: `${at} and ${other} swapped`,
    on(thread) {
      const [a, b] = [at % thread.length, other % thread.length].sort((x, y) => x - y) as [
        number,
        number,
      ]
      if (a === b) return undefined
      const kept = [...thread]
      kept[a] = thread[b]!
      kept[b] = thread[a]!
      return { kept: numbered(kept), from: a, to: b + 2 }
    },
  }
}

function copied({ at, to }: { at: number; to: number }): Tampering {
  return {
    what: `${at} copied to ${to}`,
    on(thread) {
      const n = to % (thread.length + 1)
      const kept = [...thread.slice(0, n), thread[at % thread.length]!, ...thread.slice(n)]
      return { kept: numbered(kept), from: n, to: n + 2 }
    },
  }
}

function unlinked(at: number): Tampering {
  return {
    what: `the link of ${at} taken away`,
    on: (thread) =>
      edit(thread, at, ({ entry, marks }) => {
        const { link: _, ...rest } = entry
        const { chain: __, ...facts } = marks?.facts ?? {}
        return { entry: rest, marks: { ...marks, facts } }
      }),
  }
}

function inserted(at: number): Tampering {
  return {
    what: `an approval invented at ${at}`,
    on(thread) {
      const n = at % (thread.length + 1)
      const like = thread[Math.max(0, n - 1)]!.entry
      const body = '{"askId":"ask0","state":"approved"}'
      const { link: _, ...bare } = like
      const invented = { ...bare, id: 'e_invented', kind: 'ask.answered' as const, body }
      const entry = { ...invented, digest: sha256(body) }
      const kept = [...thread.slice(0, n), { entry }, ...thread.slice(n)]
      return { kept: numbered(kept), from: n, to: n + 2 }
    },
  }
}

function linkOfAnother({ at, other }: { at: number; other: number }): Tampering {
  return {
    what: `the link of ${at} is that of ${other}`,
    on: (thread) =>
      edit(thread, at, ({ entry, marks }) => {
        const link = thread[other % thread.length]!.entry.link!
        return link === entry.link
          ? undefined
          : { entry: { ...entry, link }, ...(marks && { marks }) }
      }),
  }
}

function edit(
  thread: readonly Kept[],
  at: number,
  change: (kept: Kept) => Kept | undefined,
): ReturnType<Tampering['on']> {
  const n = at % thread.length
  const changed = change(structuredClone(thread[n]!))
  if (!changed || JSON.stringify(changed) === JSON.stringify(thread[n])) return undefined
  const kept = thread.map((one, i) => (i === n ? changed : one))
  return { kept, from: n + 1, to: n + 1 }
}

const numbered = (thread: readonly Kept[]): Kept[] =>
  thread.map(({ entry, ...rest }, n) => ({ ...rest, entry: { ...entry, seq: n + 1 } }))

function replaced(text: string, where: number, to: string): string {
  const at = where % Math.max(1, text.length)
  return text.slice(0, at) + to + text.slice(at + 1)
}

/** One leaf is another; the same shape, so that every store can hold it. */
function changed<T extends object>(given: T, where: number, to: string): T | undefined {
  const leaves: { within: Record<string, unknown>; key: string }[] = []
  const other = structuredClone(given)
  const walk = (within: Record<string, unknown>) => {
    for (const [key, part] of Object.entries(within)) {
      if (typeof part === 'object' && part !== null) walk(part as Record<string, unknown>)
      else leaves.push({ within, key })
    }
  }
  walk(other as Record<string, unknown>)
  const leaf = leaves[where % Math.max(1, leaves.length)]
  if (!leaf) return undefined
  const old = leaf.within[leaf.key]
  if (typeof old === 'number') leaf.within[leaf.key] = old + 1
  else if (typeof old === 'string') leaf.within[leaf.key] = replaced(old, where, to)
  else if (typeof old === 'boolean') leaf.within[leaf.key] = !old
  else leaf.within[leaf.key] = to
  return JSON.stringify(other) === JSON.stringify(given) ? undefined : other
}
