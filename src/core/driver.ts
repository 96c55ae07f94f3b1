import type { Work } from '../lib/work.ts'
import type { Agent, AgentContext, AgentEvent } from './agent.ts'
import { checkPiece, draftOf } from './agent-says.ts'
import { parentOf } from './branch.ts'
import type { Channel, Outlet } from './channel.ts'
import type { Bench } from './effects.ts'
import { endOf } from './ending.ts'
import { draft } from './entries.ts'
import { AgentError, toRuntimeError } from './errors.ts'
import { holdLease, isStop, type Leg, LegStop } from './leg.ts'
import type { Message } from './messages.ts'
import { retractOpen } from './retract.ts'
import { pauseAfter, type RetryRule } from './retry.ts'

/** Drives one leg: what the agent does goes into the journal, and the leg ends in one transition. */
export async function drive(leg: Leg, agent: Agent, ctx: () => AgentContext, out: Out) {
  const { thread, run, signal } = leg
  const { channel } = out
  const parentRunId = parentOf(thread.state, run)
  thread.tail.begin(leg.lease.fence, leg.runId, thread.state.seq)
  channel.write(draft('run.started', { leg: run.leg + 1, parentRunId }))
  if (run.leg === 0) channel.write(draft('thread.head', { runId: leg.runId }))
  const unlisten = thread.listen((entry) => {
    if (entry.kind === 'run.cancelling' && entry.runId === leg.runId)
      leg.abort.abort(new LegStop('cancelled'))
  })
  const over = new AbortController()
  try {
    await holdLease(leg, channel) // an agent may start effects that we do not see
    await Promise.race([listen(agent.run(ctx()), run.agent, out), stuck(leg, over.signal)])
    signal.throwIfAborted() // an agent may stop quietly
    await endOf(leg, channel)
  } catch (thrown) {
    // Its other branches are not cut: what they have begun is theirs to finish.
    if (isStop(thrown, 'parked') || isStop(thrown, 'finished'))
      await branchesOver(leg, out.work, thrown)
    const error = signal.aborted ? thrown : await worthAgain(thrown, leg, agent, out)
    if (!signal.aborted && !(error instanceof LegStop))
      out.report(error, { agent: agent.name }, 'run failed')
    await endOf(leg, channel, signal.aborted ? signal.reason : error)
  } finally {
    unlisten()
    over.abort('over')
  }
}

/**
 * What the leg ends with after its agent threw: the error, or, if the agent may be run again, the wish
 * for a new leg, a while later. What failed at a provider was tried again there.
 */
async function worthAgain(thrown: unknown, leg: Leg, agent: Agent, out: Out): Promise<unknown> {
  if (!agent.supportsRetry || thrown instanceof LegStop || thrown instanceof AgentError)
    return thrown
  const { code, message } = toRuntimeError(thrown, 'agent_failed')
  const tries = leg.run.agentRetries + 1
  const rule = { ...out.retry, ...agent.retry }
  if (code !== 'agent_failed' || tries >= rule.attempts) return thrown
  const inMs = pauseAfter({ code, retryable: true }, tries, rule, out.random()) ?? 0
  const value = { attempt: tries + 1, inMs, code, message, agent: agent.name }
  // Unless the leg is not ours any more, or cancelled.
  const stop = await retractOpen(leg, out.channel, code).catch((reason: unknown) => reason)
  if (stop) return stop
  out.channel.write(draft('event', { name: 'retry', value }))
  out.report(thrown, { agent: agent.name, attempt: tries }, 'agent failed, and is run again')
  await leg.clock.sleep(inMs, leg.signal).catch(() => {}) // whoever stops it is heard
  return new LegStop('again')
}

/** Where what an agent says goes: to the journal, and to what it is told that was said. */
export interface Out {
  channel: Channel
  messages: Message[]
  work: Work
  report: Bench['report']
  /** How an agent that may be is run again. */
  retry: RetryRule
  random: () => number
}

/** Writes what an agent says; its state is kept under the name. */
export async function listen(
  events: AsyncIterable<AgentEvent>,
  name: string,
  { channel, messages }: { channel: Outlet; messages: Message[] },
) {
  for await (const event of events) {
    if (event?.type === 'piece') {
      checkPiece(event.piece)
      channel.piece(event.piece)
    } else {
      channel.write(draftOf(event, name))
      if (event.type === 'message' && event.for !== 'client') messages.push(event.message)
    }
    if (channel.waiting >= highWater) await channel.commit()
  }
}

/** Entries that may wait to be written before the agent has to wait too. */
const highWater = 256

/** Milliseconds an agent has to stop; less than those after which others end the run for it. */
const patience = 4_000

/** Milliseconds that the other branches of a leg have to end after one of them has ended the leg. */
const branchLimit = 15 * 60_000

/** Waits for the other branches of the leg. After a limit they are told to stop, and then left behind. */
async function branchesOver(leg: Leg, work: Work, why: unknown): Promise<void> {
  const over = new AbortController()
  const cut = leg.clock.timer(branchLimit, () => leg.abort.abort(why))
  await Promise.race([work.over(), stuck(leg, over.signal).catch(() => {})])
  cut()
  over.abort('over')
}

/** Rejects a while after the leg was told to stop: an agent that does not listen is left behind. */
async function stuck({ signal, clock }: Leg, over: AbortSignal): Promise<never> {
  await new Promise<void>((done) => {
    const resolve = () => done()
    if (signal.aborted) resolve()
    signal.addEventListener('abort', resolve, { once: true, signal: over })
    over.addEventListener('abort', resolve, { once: true })
  })
  await clock.sleep(patience, over)
  throw signal.reason
}
