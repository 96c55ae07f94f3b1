import { ConfigError } from '../config.ts'
import { eraseThread } from '../core/audit-residue.ts'
import { isRuntimeError } from '../core/errors.ts'
import { auditIfAny } from '../open-audit.ts'
import { type Command, counted, withErasableStore, words } from './command.ts'
import { eachOf } from './transfer.ts'

/**
 * `handrail erase --owner U [--tenant T]`: removes all threads of a user, also those that something runs
 * on: whoever drives one finds out at its next step.
 */
export async function eraseOwner(command: Command): Promise<number> {
  const options = { owner: { type: 'string' }, tenant: { type: 'string' } } as const
  const { owner, tenant = 'default' } = words(command, options).values
  if (owner === undefined) throw new ConfigError('Say whose threads: --owner U [--tenant T].')
  const audit = await auditIfAny(command.config)
  let erased = 0
  await withErasableStore(command.config, (store) =>
    eachOf(store.everyThread(), async (row) => {
      if (row.owner !== owner || row.tenant !== tenant) return
      try {
        await eraseThread(store, audit, row.threadId, {}, Date.now())
      } catch (error) {
        if (!isRuntimeError(error, 'thread_not_found')) throw error
      }
      command.progress(`${counted(++erased, 'thread')} erased`)
    }),
  )
  command.say(`${counted(erased, 'thread')} of ${owner} erased.`)
  if (!audit && erased > 0) command.say('There is no audit key: nothing proves that they were.')
  return 0
}
