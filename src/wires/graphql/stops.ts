import { RuntimeError } from '../../core/errors.ts'
import { hasReturned } from '../../core/returned.ts'
import type { Caller, Runtime } from '../../core/runtime.ts'
import { ended } from '../../core/state.ts'
import type { Log } from '../../core/worker.ts'

export interface StopRule {
  /** What a connection means that a client closes before its response is whole. */
  rule: 'grace' | 'cancel' | 'continue'
  /** Milliseconds in which it may come back. */
  grace: number
}

/**
 * Stop, to these clients, is to close the connection; so is a reload. A client that reloads asks
 * for the thread at once: then the run goes on. That it did is written in the journal, for the two
 * requests may come to different servers.
 */
export function stops(runtime: Runtime, { rule, grace }: StopRule, log: Log) {
  async function settle(caller: Caller, threadId: string, runId: string, seq: number) {
    const thread = await runtime.find(caller, threadId)
    const run = thread?.state.runs.get(runId)
    if (!thread || !run || ended(run) || run.status === 'waiting') return
    if (rule === 'grace' && (await hasReturned(thread, runId, seq))) return
    await runtime.cancel(caller, threadId, runId)
  }
  const settled = (error: unknown, threadId: string) => {
    if (error instanceof RuntimeError && error.code === 'run_ended') return
    log.warn({ threadId, err: error }, 'could not stop what a client left')
  }
  return {
    /** `seq`: where the thread was when the client left. */
    left(caller: Caller, threadId: string, runId: string, seq: number): void {
      if (rule === 'continue') return
      const wait =
        rule === 'grace' ? runtime.clock.sleep(grace, runtime.closing) : Promise.resolve()
      wait
        .then(
          () => settle(caller, threadId, runId, seq),
          () => {}, // the server stops: the next one goes on with the run
        )
        .catch((error: unknown) => settled(error, threadId))
    },
    /** Somebody asks for the thread: what runs there is wanted. */
    async returned(caller: Caller, threadId: string): Promise<void> {
      if (rule === 'grace') await runtime.returned(caller, threadId)
    },
  }
}
