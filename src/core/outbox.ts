import type { Clock } from '../lib/clock.ts'
import { type Actor, draft } from './entries.ts'
import { isRuntimeError } from './errors.ts'
import { hookFact } from './marks.ts'
import type { AskRecord, Hook } from './state.ts'
import { isLost, type Thread } from './thread.ts'
import type { Log } from './worker.ts'

/** What is told of an ask, as it is when it is told. */
export interface Notice {
  /** The same for every try. */
  id: string
  about: Hook['about']
  record: AskRecord
  tenant: string
  owner: string
  agent: string
}

export interface OutboxOptions {
  /** Tells it; rejects when it was not taken. Absent: nobody wants to know any more. */
  deliver?: (notice: Notice, signal: AbortSignal) => Promise<void>
  /** Milliseconds until the second try; then twice as long, and so on. */
  again?: number
}

interface Setup extends OutboxOptions {
  clock: Clock
  log: Log
  /** No more is begun. */
  leaving: AbortSignal
  closing: AbortSignal
  /** Has the thread looked at again. */
  ring: (threadId: string, at: number) => void
}

/** Notices on their way at once: an endpoint that hangs holds so many and no more. */
const most = 8
/** Milliseconds until it is looked again for what had to wait. */
const soon = 500
const longestPause = 3_600_000
/** Part of a pause that is added at random. */
const longestJitter = 1 / 4
/** Tried for so long. */
const patience = 86_400_000

/**
 * Tells the outside of asks, at least once, from whichever server: the wish is in the journal, and so is
 * every try, before it is made. Nothing waits for it, and no lease is held.
 */
export class Outbox {
  readonly #setup: Setup
  readonly #underWay = new Set<string>()

  constructor(setup: Setup) {
    this.#setup = setup
  }

  /** Begins what is due, as far as there is room. */
  offer(thread: Thread): void {
    const { clock, leaving, ring } = this.#setup
    if (leaving.aborted) return
    for (const [askId, hook] of thread.state.hooks) {
      if (isLater(hook, clock.now()) || this.#underWay.has(askId)) continue
      if (this.#underWay.size >= most) {
        ring(thread.threadId, clock.now() + soon)
        return
      }
      this.#underWay.add(askId)
      void this.#tell(thread, askId, hook).finally(() => {
        this.#underWay.delete(askId)
        // There may be news of it by now.
        if (thread.state.hooks.has(askId)) ring(thread.threadId, clock.now() + soon)
      })
    }
  }

  async #tell(thread: Thread, askId: string, { about, attempt: tries, since }: Hook) {
    const { clock, log, deliver, closing, ring, again = 15_000 } = this.#setup
    const attempt = tries + 1
    const line = { threadId: thread.threadId, askId, about, attempt }
    try {
      const late = clock.now() - since > patience
      if (!deliver || late) {
        if (late) log.warn(line, 'a notice was given up')
        return await this.#done(thread, askId, about, tries, 'given_up')
      }
      const pause = Math.min(longestPause, again * 2 ** tries)
      const next = clock.now() + Math.ceil(pause * (1 + Math.random() * longestJitter))
      // Whoever gets this written makes this try; a crash leaves it to the next.
      const tried = draft('hook.tried', { askId, about, attempt, next })
      if (!(await write(thread, [tried], askId, hookFact(about, tries)))) return
      ring(thread.threadId, next)
      await deliver(noticeOf(thread, askId, about), closing)
      await this.#done(thread, askId, about, attempt, 'delivered')
    } catch (error) {
      // Without its stack: most of these are the endpoint's trouble.
      if (!closing.aborted) log.warn({ ...line, reason: String(error) }, 'a notice was not taken')
    }
  }

  async #done(
    thread: Thread,
    askId: string,
    about: Hook['about'],
    attempt: number,
    outcome: 'delivered' | 'given_up',
  ): Promise<void> {
    const done = draft('hook.done', { askId, about, outcome })
    await write(thread, [done], askId, hookFact(about, attempt))
  }
}

/** Whether the next try is due later. One that is further away than any pause was set by a clock that was set back. */
const isLater = ({ at }: Hook, now: number): boolean =>
  at > now && at - now <= longestPause * (1 + longestJitter)

const actor: Actor = { type: 'system', id: 'outbox' }

/** False when it is another's by now, or was settled meanwhile. */
async function write(
  thread: Thread,
  drafts: Parameters<Thread['commit']>[0],
  askId: string,
  is: string,
): Promise<boolean> {
  try {
    const guard = { expect: [{ fact: `hook:${askId}`, is }] }
    await thread.commit(drafts, { guard, actor })
    return true
  } catch (error) {
    if (isLost(error)) return false
    if (!isRuntimeError(error, 'journal_conflict')) throw error
    await thread.sync()
    return false
  }
}

function noticeOf({ state }: Thread, askId: string, about: Hook['about']): Notice {
  const record = state.asks.get(askId)!
  const { tenant, owner } = state
  const agent = state.runs.get(record.runId)?.agent ?? state.agent
  return { id: `${askId}.${about}`, about, record, tenant, owner, agent }
}
