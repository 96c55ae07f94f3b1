import { parseArgs } from 'node:util'
import { ConfigError } from '../config.ts'
import type { AuditKeys } from '../core/audit.ts'
import { eraseThread } from '../core/audit-residue.ts'
import { isRuntimeError } from '../core/errors.ts'
import type { ThreadRow } from '../core/store.ts'
import { auditIfAny } from '../open-audit.ts'
import { ageOf, type Command, counted, withErasableStore } from './command.ts'
import { eachOf, type Whole } from './transfer.ts'

/**
 * `handrail prune --older-than 90d [--archived] [--erase]`: removes threads on which nothing runs or waits
 * and nothing has happened for that long. Without `--erase` it only says what it would remove.
 */
export async function prune({ config, args, say, progress }: Command): Promise<number> {
  const { age, archived, erase } = read(args)
  const before = Date.now() - age
  const isOld = (row: ThreadRow) =>
    row.status === 'idle' && row.updatedAt < before && (row.archived || !archived)
  let found = 0
  let removed = 0
  const audit = await auditIfAny(config)
  await withErasableStore(config, (store) =>
    eachOf(store.everyThread(), async (row) => {
      if (!isOld(row)) return
      found++
      if (!erase) say(`${row.threadId}  ${new Date(row.updatedAt).toISOString()}  ${titleOf(row)}`)
      else if (await remove(store, audit, row, isOld))
        progress(`${counted(++removed, 'thread')} erased`)
    }),
  )
  const limit = new Date(before).toISOString()
  if (erase) say(`${counted(removed, 'thread')} erased, untouched since ${limit}.`)
  else say(`${counted(found, 'thread')} untouched since ${limit}. Add --erase to remove them.`)
  return 0
}

/** Looks again first: somebody may have come back to it. */
async function remove(
  store: Whole,
  audit: AuditKeys | undefined,
  { threadId }: ThreadRow,
  isOld: (row: ThreadRow) => boolean,
) {
  const row = await store.thread(threadId)
  if (!row || !isOld(row)) return false
  try {
    const expect = [{ fact: 'active', is: null }]
    await eraseThread(store, audit, threadId, { expect }, Date.now())
    return true
  } catch (error) {
    if (isRuntimeError(error, 'journal_conflict') || isRuntimeError(error, 'thread_not_found'))
      return false
    throw error
  }
}

const titleOf = ({ title }: ThreadRow) => (title ?? 'without a title').replace(/\p{C}/gu, ' ')

function read(args: string[]) {
  const options = {
    'older-than': { type: 'string' },
    archived: { type: 'boolean', default: false },
    erase: { type: 'boolean', default: false },
  } as const
  let values: ReturnType<typeof parseArgs<{ options: typeof options }>>['values']
  try {
    values = parseArgs({ args, options }).values
  } catch (error) {
    throw new ConfigError((error as Error).message)
  }
  const age = ageOf(values['older-than'] ?? '')
  if (age === undefined) throw new ConfigError('Say how old: --older-than 90d (m, h, d or w).')
  return { age, archived: values.archived, erase: values.erase }
}
