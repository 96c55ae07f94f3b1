import { ConfigError } from '../config.ts'
import { refOf } from '../core/audit.ts'
import { headOf } from '../core/audit-heads.ts'
import { faults, Verifier, verifyThread } from '../core/audit-verify.ts'
import { findAudit } from '../open-audit.ts'
import { refuseEmpty } from '../open-reader.ts'
import { type Command, complain, counted, words } from './command.ts'
import { withReader } from './reading.ts'

/** `handrail audit head [--thread ID] >> heads.ndjson`: signed lines, to be kept where servers cannot write. */
export async function exportHeads(command: Command): Promise<number> {
  const { config, say, progress } = command
  const { thread } = words(command, { thread: { type: 'string' } }).values
  refuseEmpty(config)
  const keys = await findAudit(config)
  let done = 0
  let broken = 0
  await withReader(config, async (reader) => {
    const threadIds = thread === undefined ? reader.threadIds() : [thread]
    for await (const threadId of threadIds) {
      const found = await verifyThread(reader.entries(threadId), new Verifier(keys, threadId))
      const { verdict, seq, head: link, problems } = found
      if (thread !== undefined && seq === 0) throw new ConfigError(`There is no thread ${thread}.`)
      // What is broken is not vouched for.
      if (verdict === 'ok' && link !== null)
        say(JSON.stringify(headOf(keys, { ref: refOf(threadId), seq, link }, Date.now())))
      if (verdict === 'broken') {
        broken++
        complain(`${threadId}: broken at ${problems[0]!.seq}: ${faults[problems[0]!.fault]}`)
      }
      progress(counted(++done, 'thread'))
    }
  })
  return broken > 0 ? 1 : 0
}
