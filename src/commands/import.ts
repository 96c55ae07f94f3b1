import { existsSync } from 'node:fs'
import { ConfigError } from '../config.ts'
import { type Command, counted, directoryOf, placeOf, withDirectory, withStore } from './command.ts'
import { report } from './report.ts'
import { transfer } from './transfer.ts'

/** `handrail import <directory>`: every thread of a directory into the store. */
export async function importThreads(command: Command): Promise<number> {
  const directory = directoryOf(command)
  if (!existsSync(`${directory}/chats`))
    throw new ConfigError(`${directory} has no chats: name the directory that a server wrote.`)
  return await withDirectory(directory, async (from) =>
    withStore(command.config, async (to) => {
      const line = (done: number) => command.progress(`${counted(done, 'thread')} imported`)
      const done = await transfer(from, to, line)
      return report(command, done, `from ${directory} to ${placeOf(command)}`)
    }),
  )
}
