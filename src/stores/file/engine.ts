import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { RuntimeError } from '../../core/errors.ts'
import { type Clock, systemClock } from '../../lib/clock.ts'
import { paced } from '../../lib/paced.ts'
import { makePrivate, privateDirectory } from '../../lib/private.ts'
import { Chats } from './chats.ts'
import { type Describe, Describer } from './describe.ts'
import type { Tools } from './disk.ts'
import { type Disk, isMissing, type Log, nodeDisk, replaceFile, syncDirectory } from './disk.ts'
import { Health } from './health.ts'
import { IndexFile } from './index-file.ts'
import { Keeper } from './keeper.ts'
import { Leases } from './leases.ts'
import type { Lock } from './lock.ts'
import { CommitLog } from './log.ts'
import { segmentsOf } from './read-log.ts'
import { recover } from './recover.ts'
import { tryRoom } from './room.ts'
import { Stage } from './stage.ts'
import { Tables } from './tables.ts'
import { Upkeep } from './upkeep.ts'
import { unavailable, Writer } from './writer.ts'

export interface FileStoreOptions {
  directory: string
  clock: Clock
  log?: Log
  /** Called at named points between two effects on the disk; tests die there. */
  crash?: (point: string) => void
  describe?: Describe
  /** A segment of the commit log that is longer is closed and, once its contents moved, dropped. */
  segmentBytes?: number
  /** Milliseconds from a commit until its entries are in their journals. */
  syncEvery?: number
  /** Milliseconds that a search may take before it says what it has. */
  patience?: number
  fs?: Partial<Disk>
}

export type Engine = Awaited<ReturnType<typeof openEngine>>

const format = 1
/** Milliseconds between two tries whether there is room again. */
const probeEvery = 1_000
const silent: Log = { info() {}, warn() {}, error() {} }

/** Puts the parts together, brings them up to date with the log, and starts to write. */
export async function openEngine(options: FileStoreOptions, lock: Lock) {
  const { directory, clock, log = silent, segmentBytes = 16 << 20, syncEvery = 500 } = options
  const health = new Health(log)
  const disk = { ...nodeDisk, ...options.fs }
  const crash = options.crash ?? (() => {})
  const tools: Tools = { log, crash, disk: health.watch(disk) }

  const at = (name: string) => join(directory, name)
  for (const name of ['log', 'chats', 'index'])
    await mkdir(at(name), { recursive: true, mode: privateDirectory })
  // Older versions made them with the rights that the umask leaves.
  for (const name of ['log', 'chats', 'index', 'erased', 'format.json']) await makePrivate(at(name))
  await syncDirectory(directory, tools.disk)
  await checkFormat(at('format.json'), tools)

  const tables = new Tables()
  const leases = new Leases(clock)
  const chats = new Chats(at('chats'), tools, (threadId) => leases.live(threadId))
  const index = new IndexFile(at('index/threads.ndjson'), tools)
  const segments = await segmentsOf(at('log'))
  const { epoch, moved } = await recover({ directory, tools, tables, chats, index }, segments)
  leases.enter(epoch + 1)

  const commitLog = new CommitLog(at('log'), segments, tools)
  await commitLog.rotate(leases.epoch)
  const describer = new Describer(log, (threadId) =>
    tables.rows.has(threadId) ? chats.folderOf(threadId) : undefined,
  )
  if (options.describe) describer.begin(options.describe, moved)
  const directories = { chatsDirectory: at('chats') }
  const keeper = new Keeper({ tools, chats, tables, index, commitLog, describer, ...directories })
  const upkeep = new Upkeep({
    ...{ commitLog, keeper, chats, log, segmentBytes, syncEvery },
    epoch: () => leases.epoch,
    failed: () => health.failed !== undefined,
    look: () => health.look(lock.place) && health.look(commitLog.place),
    nudge: () => writer.nudge(),
  })
  const writer = new Writer({
    stage: () => new Stage(tables, chats, leases),
    async write(records) {
      // Also before, after a pause: what will be refused is better not written.
      if (!health.look(lock.place, 100)) throw health.failed
      await commitLog.write(records)
      // A process that took the lock since may have read the log before this was in it, or after.
      if (!health.look(lock.place))
        throw new RuntimeError('outcome_unknown', undefined, { cause: health.failed })
    },
    between: () => upkeep.between(),
  })
  health.onFailure = (error) => writer.stop(unavailable(error))
  upkeep.schedule()
  const { patience = 2_000 } = options
  const parts = { tables, leases, chats, commitLog, describer, moved, keeper, upkeep, writer }
  // Only when the last write found no room: nobody else may come to find out that there is some.
  const probe = paced(() => tryRoom(at('log'), tools.disk), probeEvery, systemClock)
  return { ...parts, health, patience, probe }
}

async function checkFormat(path: string, { disk }: Tools): Promise<void> {
  const text = await readFile(path, 'utf8').catch((error) => {
    if (isMissing(error)) return undefined
    throw error
  })
  if (text === undefined) {
    await replaceFile(path, [Buffer.from(`${JSON.stringify({ format })}\n`)], disk)
    return
  }
  const found = readFormat(text)
  if (found === undefined) throw new Error(`${path} cannot be read. It should say {"format":1}.`)
  if (found > format)
    throw new Error(
      `${path} says format ${found}; this version of Handrail knows formats up to ${format}. ` +
        'Use the version that wrote the directory, or a newer one.',
    )
}

function readFormat(text: string): number | undefined {
  try {
    const { format } = JSON.parse(text)
    return Number.isInteger(format) ? format : undefined
  } catch {
    return undefined
  }
}
