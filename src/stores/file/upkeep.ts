import type { Chats } from './chats.ts'
import type { Log } from './disk.ts'
import type { Keeper } from './keeper.ts'
import type { CommitLog } from './log.ts'

interface UpkeepOptions {
  commitLog: CommitLog
  keeper: Keeper
  chats: Chats
  log: Log
  epoch(): number
  failed(): boolean
  /** The same after a look whether lock and log are still where they were put. False: it has stopped. */
  look(): boolean
  /** Makes the writer come by, so that `between` is called though nobody writes. */
  nudge(): void
  segmentBytes: number
  syncEvery: number
}

/** Segments that may wait to be dropped before writers have to wait for it too. */
const patience = 8
/** Milliseconds after which also a server with nothing to write finds out that it has lost its directory. */
const lookEvery = 1_000

/** Decides when the keeper works: soon after a commit, and whenever a segment is full. */
export class Upkeep {
  readonly #options: UpkeepOptions
  readonly #looking: NodeJS.Timeout
  #timer: NodeJS.Timeout | undefined
  #busy = false
  #closed = false
  #complained = false
  /** The segment is to end, however short it is. */
  #ending = false

  constructor(options: UpkeepOptions) {
    this.#options = options
    this.#looking = setInterval(() => options.look() || clearInterval(this.#looking), lookEvery)
    this.#looking.unref()
  }

  /** Between two batches of the writer: the only time at which a segment may end. */
  async between(): Promise<void> {
    const { commitLog, segmentBytes, failed, look } = this.#options
    if (failed() || this.#closed) return
    if (commitLog.size > segmentBytes || this.#ending) {
      if (!look()) return // the next segment may be another's by now
      this.#ending = false
      await this.#try(() => this.#rotate())
      const done = this.#work(() => this.#options.keeper.checkpoint())
      if (commitLog.old.length > patience) await done
    }
    this.schedule()
  }

  schedule(): void {
    if (this.#timer || this.#busy || this.#closed || !this.#due) return
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      void this.#tick()
    }, this.#options.syncEvery).unref()
  }

  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#timer)
    clearInterval(this.#looking)
    const { keeper, commitLog, failed, look } = this.#options
    await keeper.idle()
    if (failed() || !look()) return
    await this.#try(async () => {
      if (commitLog.used) await this.#rotate()
      await keeper.checkpoint()
    })
  }

  get #due(): boolean {
    const { chats, commitLog } = this.#options
    return chats.waiting.size > 0 || chats.erased.size > 0 || commitLog.old.length > 0
  }

  async #tick(): Promise<void> {
    const { keeper, commitLog, chats, failed, look, nudge } = this.#options
    if (failed() || this.#closed || !look()) return
    // Erased means gone from the log too, so that does not wait until the segment is full.
    if (chats.erased.size > 0) {
      this.#ending = true
      nudge()
    } else await this.#work(() => (commitLog.old.length > 0 ? keeper.checkpoint() : keeper.flush()))
  }

  async #work(work: () => Promise<void>): Promise<void> {
    this.#busy = true
    await this.#try(work)
    this.#busy = false
    this.schedule()
  }

  async #rotate(): Promise<void> {
    await this.#options.commitLog.rotate(this.#options.epoch())
  }

  /** Nothing is lost when this fails, the log still has it; it is tried again. Said once. */
  async #try(work: () => Promise<void>): Promise<void> {
    try {
      await work()
      this.#complained = false
    } catch (error) {
      if (!this.#complained)
        this.#options.log.warn({ err: error }, 'could not write journals or index; trying again')
      this.#complained = true
    }
  }
}
