import { ConfigError } from '../config.ts'
import { exportLines } from '../core/audit-export.ts'
import type { Kept } from '../core/store.ts'
import { findAudit } from '../open-audit.ts'
import { refuseEmpty } from '../open-reader.ts'
import { type Command, words } from './command.ts'
import { withReader } from './reading.ts'

/** `handrail audit export --thread ID > decisions.ndjson`: for somebody who has no access to the store. */
export async function exportDecisions(command: Command): Promise<number> {
  const { thread } = words(command, { thread: { type: 'string' } }).values
  if (thread === undefined) throw new ConfigError('Name a thread: --thread ID.')
  refuseEmpty(command.config)
  const keys = await findAudit(command.config)
  return await withReader(command.config, async (reader) => {
    let found = false
    const entries = async function* (): AsyncGenerator<Kept> {
      for await (const kept of reader.entries(thread)) {
        if (!kept) throw new ConfigError('The journal cannot be read: verify the thread first.')
        found = true
        yield kept
      }
    }
    const lines: string[] = []
    for await (const line of exportLines(keys, thread, entries(), Date.now())) lines.push(line)
    if (!found) throw new ConfigError(`There is no thread ${thread}.`)
    for (const line of lines) command.say(line)
    return 0
  })
}
