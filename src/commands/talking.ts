import { type Clock, systemClock } from '../lib/clock.ts'
import type { Command } from './command.ts'

interface Out {
  write(text: string): unknown
  isTTY?: boolean
}

/** Milliseconds between two lines of progress, and before the first: what is done by then says itself. */
const every = 1_000

/** What a command says goes out; how far it is goes beside it, in one line on a screen. */
export function talking(
  out: Out = process.stdout,
  beside: Out = process.stderr,
  clock: Pick<Clock, 'monotonic'> = systemClock,
): Pick<Command, 'say' | 'progress'> {
  let last = clock.monotonic()
  let shown = false
  return {
    say(line) {
      if (shown) beside.write(wipe)
      shown = false
      out.write(`${line}\n`)
    },
    progress(line) {
      if (clock.monotonic() - last < every) return
      last = clock.monotonic()
      shown = beside.isTTY ?? false
      beside.write(shown ? `${wipe}${line}` : `${line}\n`)
    },
  }
}

/** To the beginning of the line, and nothing left of it. */
const wipe = '\r\x1b[K'
