import { type Command, counted, placeOf, withDirectory, withStore } from './command.ts'
import { report } from './report.ts'
import { transfer } from './transfer.ts'

/** `handrail export <directory>`: every thread of the store to a directory that a server can run on. */
export async function exportThreads(command: Command): Promise<number> {
  return await withDirectory(command, async (to, directory) =>
    withStore(command.config, async (from) => {
      const line = (done: number) => command.progress(`${counted(done, 'thread')} exported`)
      const done = await transfer(from, to, line)
      return report(command, done, `from ${placeOf(command)} to ${directory}`)
    }),
  )
}
