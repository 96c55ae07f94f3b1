import {
  type Command,
  counted,
  directoryOf,
  placeOf,
  withDirectory,
  withOldStore,
} from './command.ts'
import { report } from './report.ts'
import { transfer } from './transfer.ts'

/** `handrail export <directory>`: every thread of the store to a directory that a server can run on. */
export async function exportThreads(command: Command): Promise<number> {
  const directory = directoryOf(command)
  // The store first: where it cannot be had, there is nothing to leave behind.
  return await withOldStore(command.config, async (from) =>
    withDirectory(directory, async (to) => {
      const line = (done: number) => command.progress(`${counted(done, 'thread')} exported`)
      const done = await transfer(from, to, line)
      return report(command, done, `from ${placeOf(command)} to ${directory}`)
    }),
  )
}
