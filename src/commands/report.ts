import { type Command, counted } from './command.ts'
import type { Transferred } from './transfer.ts'

const mostNamed = 20

/** What became of it; the exit code. */
export function report({ say }: Command, done: Transferred, way: string): number {
  const { written, same, entries, residues, refused, digest } = done
  const there = same > 0 ? `, ${counted(same, 'thread')} the same already` : ''
  say(
    `${counted(written, 'thread')} ${way}${there}: ${entries.toLocaleString('en')} entries, verified.`,
  )
  if (residues > 0) say(`What is left of ${counted(residues, 'erased thread')} went with them.`)
  say(`digest ${digest}`)
  for (const line of refused.slice(0, mostNamed)) say(`left out: ${line}`)
  if (refused.length > mostNamed) say(`left out: ${refused.length - mostNamed} more`)
  return refused.length > 0 ? 1 : 0
}
