import { sha256 } from '../lib/canonical.ts'
import { offshoot } from '../lib/signal.ts'
import type { AgentEvent, Task, TaskEnd } from './agent.ts'
import { messagesAt } from './branch.ts'
import type { Outlet } from './channel.ts'
import type { AgentSetup, contextOf } from './context.ts'
import { listen } from './driver.ts'
import { type Bench, type Part, placed } from './effects.ts'
import type { Draft, Usage } from './entries.ts'
import { RuntimeError, withoutSecretTexts } from './errors.ts'
import { holdLease, type Leg } from './leg.ts'
import { userText } from './messages.ts'
import { partSetup } from './parts.ts'
import { isHarmless } from './tool.ts'
import { type AgentMoved, agentMoved, workflowEnded } from './workflow-events.ts'

/** Whose part it is, and how what an agent may touch is made. */
interface Delegating {
  setup: AgentSetup
  bench: Bench
  context: typeof contextOf
}

/** Agents that have work done by agents that have work done: deeper than anybody means. */
const deepest = 8

/**
 * Runs another agent inside of a leg. All it does goes the same way as everything else, through the same
 * channel, ledger and budget; it is marked with the way to it, and by that found again in every leg.
 */
export async function delegate(
  task: Task,
  { setup: mine, bench, context }: Delegating,
): Promise<TaskEnd> {
  const path = placed(bench, task.path)
  if (path.split('/').length > deepest)
    throw new RuntimeError('agent_failed', `The way ${path} is too deep.`)
  const { leg } = bench
  const { failure } = task
  if (failure && !hasDoubts(leg, path)) throw failure
  const setup = partSetup(task.agent, mine, bench.agents)
  const part: Part = { path, agent: setup.agent.name, key: `${leg.runId}/${path}` }
  const channel = marked(bench.channel, part)
  await channel.commit() // what an earlier try has said is found in what is written
  // Made anew in every leg from what is the same in every leg; nobody needs to keep it.
  const told = userText(`msg_${sha256(part.key).slice(0, 26)}`, task.input)
  const messages = [told, ...messagesAt(leg.thread.state, leg.run, path)]
  const { signal, leave } = offshoot(leg.signal, ...(task.signal ? [task.signal] : []))
  const ownLeg = { ...leg, signal, ...(failure && { settling: failure }) }
  const own: Bench = { ...bench, leg: ownLeg, channel, messages, part }
  try {
    await holdLease(own.leg, channel) // it may start effects that we do not see
    const events = heard(setup.agent.run(context(setup, own)), path, signal)
    await listen(events, part.key, own)
    signal.throwIfAborted() // an agent may stop quietly
  } catch (error) {
    // The caller may write the message of the error to its state or its answer.
    throw withoutSecretTexts(error, leg.secrets?.() ?? [])
  } finally {
    leave()
  }
  await channel.commit()
  if (failure) throw failure
  const { states } = leg.thread.state
  const usage = usageAt(leg, path)
  return { messages: messages.slice(1), state: states.get(part.key), usage }
}

/** Steps of several agents may have the same name. Who was told to stop is not heard any more. */
async function* heard(events: AsyncIterable<AgentEvent>, path: string, signal: AbortSignal) {
  for await (const event of events) {
    signal.throwIfAborted()
    if (event.type === 'step') yield { ...event, name: `${path}/${event.name}` }
    else if (event.type !== 'event') yield event
    else if (event.name === agentMoved) yield { ...event, value: movedAt(path, event.value) }
    else if (event.name !== workflowEnded) yield event // the run goes on when a part of it ends
  }
}

const movedAt = (path: string, value: unknown): AgentMoved => {
  const moved = value as AgentMoved
  return { ...moved, path: `${path}/${moved.path}` }
}

/** Whether the outcome of a tool call at a path, or under it, is not known, and the call cannot simply be repeated. */
const hasDoubts = ({ run, thread }: Leg, path: string): boolean =>
  run.effectIds.some((effectId) => {
    const { intent, state } = thread.state.effects.get(effectId)!
    const open = state === 'unknown' || state === 'intended'
    return open && intent.effect === 'tool' && !isHarmless(intent) && isUnder(intent.path, path)
  })

const isUnder = (way: string | undefined, path: string): boolean =>
  way === path || way?.startsWith(`${path}/`) === true

function usageAt({ run, thread }: Leg, path: string): Usage {
  const sum: Usage = {}
  for (const effectId of run.effectIds) {
    const { intent, usage } = thread.state.effects.get(effectId)!
    if (!usage || !isUnder(intent.path, path)) continue
    for (const [key, value] of Object.entries(usage))
      sum[key as keyof Usage] = (sum[key as keyof Usage] ?? 0) + value
  }
  return sum
}

/** What is said on it carries the way to who says it. */
function marked(channel: Outlet, part: Part): Outlet {
  const mark = (drafts: Draft[]) => drafts.map((draft) => withPath(draft, part))
  return {
    piece: (piece) => channel.piece({ path: part.path, ...piece }),
    get waiting() {
      return channel.waiting
    },
    write: (...drafts) => channel.write(...mark(drafts)),
    commit: (...drafts) => channel.commit(...mark(drafts)),
    commitIf: (expect, ...drafts) => channel.commitIf(expect, ...mark(drafts)),
    away: (work) => channel.away(work),
  }
}

function withPath(draft: Draft, { path, agent }: Part): Draft {
  switch (draft.kind) {
    case 'message.added':
    case 'effect.intended':
      return { ...draft, body: { path, ...draft.body } } as Draft
    case 'ask.raised':
      return { ...draft, body: { ...draft.body, ask: { path, agent, ...draft.body.ask } } }
    default:
      return draft
  }
}
