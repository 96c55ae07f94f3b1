import type { Random } from '../../crash/random.ts'

/** One thing the user says, and how it answers what it is asked meanwhile. */
export interface Turn {
  word: string
  /** Pieces of the answer. */
  size: number
  /** Whether the first question is approved, the second, ... */
  approves: readonly boolean[]
}

export type Life = readonly Turn[]

const words = [
  ...['text', 'think', 'look', 'count', 'paint'],
  ...['sign', 'sign', 'both', 'mixed', 'chain'],
]

export function lifeFrom(random: Random): Life {
  return Array.from({ length: 2 + random.below(3) }, () => ({
    word: random.pick(words),
    size: 3 + random.below(8),
    approves: [random.chance(0.7), random.chance(0.5)],
  }))
}

/** What the user says in a turn; the tag is in all that follows from it. */
export const wordsOf = ({ word, size }: Turn, thread: number, n: number): string =>
  `${word} t${thread}.${n} ${size}`

/** Threads with the same life say the same, but for their numbers. */
export const withoutNumbers = (text: string): string => text.replace(/\bt\d+\./g, 't.')
