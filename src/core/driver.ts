import type { Agent, AgentContext } from './agent.ts'
import type { Channel } from './channel.ts'
import { endOf } from './ending.ts'
import { draft } from './entries.ts'
import { type Leg, LegStop } from './leg.ts'

/** Drives one leg: what the agent does goes into the journal, and the leg ends in one transition. */
export async function drive(leg: Leg, agent: Agent, ctx: AgentContext, channel: Channel) {
  const { thread, run, signal } = leg
  const parentRunId = parentOf(leg)
  thread.tail.begin(leg.lease.fence, leg.runId, thread.state.seq)
  channel.write(draft('run.started', { leg: run.leg + 1, parentRunId }))
  if (run.leg === 0) channel.write(draft('thread.head', { runId: leg.runId }))
  const unlisten = thread.listen((entry) => {
    if (entry.kind === 'run.cancelling' && entry.runId === leg.runId)
      leg.abort.abort(new LegStop('cancelled'))
  })
  try {
    signal.throwIfAborted()
    for await (const event of agent.run(ctx)) {
      if (event.type === 'piece') channel.piece(event.piece)
      else if (event.type === 'message')
        channel.write(draft('message.added', { message: event.message, for: event.for ?? 'both' }))
      else if (event.type === 'state')
        channel.write(draft('state.patched', { agent: run.agent, value: event.value }))
      else channel.write(draft('event', { name: event.name, value: event.value }))
    }
    signal.throwIfAborted() // an agent may stop quietly
    await endOf(leg, channel)
  } catch (error) {
    await endOf(leg, channel, signal.aborted ? signal.reason : error)
  } finally {
    unlisten()
  }
}

/** A first leg follows the branch it names, or the head; later legs stay where the run is. */
function parentOf({ run, thread }: Leg): string | null {
  if (run.parentRunId !== undefined) return run.parentRunId
  return run.branch ? run.branch.parentRunId : thread.state.head
}
