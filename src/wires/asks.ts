import { pendingAsks } from '../core/branch.ts'
import { type Ask, outcomes } from '../core/entries.ts'
import type { AskRecord, Run, ThreadState } from '../core/state.ts'

/** The client tools that stand for an ask, where a client offers them. */
const standIns: Partial<Record<Ask['kind'], string>> = {
  approval: 'approveAction',
  in_doubt: 'approveAction',
  budget: 'reconfigureHITL',
}

export const isStandIn = (tool: string): boolean => Object.values(standIns).includes(tool)

/** The tool of this client that an ask is shown as; undefined: it needs an interrupt. */
export function shownAs({ kind, tool }: Ask, tools: ReadonlySet<string>): string | undefined {
  if (kind === 'client_tool') return tool
  const standIn = standIns[kind]
  return standIn !== undefined && tools.has(standIn) ? standIn : undefined
}

/** Which agent of an orchestrator it is that asks, and the way to it. */
export const whoAsks = ({ agent, path }: Ask): { agent?: string; path?: string } =>
  path === undefined ? {} : { ...(agent !== undefined && { agent }), path }

/** What may be said of an effect in doubt: that its tool look again, where it can. */
export const outcomesOf = ({ checks }: Ask): string[] =>
  outcomes.filter((one) => one !== 'check' || checks)

/** A leg ends showing client calls or interrupts, never both: the calls come first. */
export function openAsks(state: ThreadState, run: Run, tools: ReadonlySet<string>) {
  const open = pendingAsks(state, run)
  const calls = open.filter(({ ask }) => shownAs(ask, tools) !== undefined)
  return calls.length > 0 ? { calls, interrupts: [] } : { calls, interrupts: open }
}

/** Whether a call of the run waits in its middle: the run works, and yet somebody must answer. */
export const waitsInside = (state: ThreadState, run: Run | undefined): boolean =>
  run?.status === 'running' && pendingAsks(state, run).some(({ ask }) => ask.live)

/** A call that the server makes in the agent's name, so that the client renders the question. */
export function standInCall({ ask }: AskRecord, tools: ReadonlySet<string>) {
  const name = shownAs(ask, tools)!
  const about = { askId: ask.askId, kind: ask.kind, title: ask.title, ...whoAsks(ask) }
  const { tool, input, card } = ask
  const more = ask.kind === 'budget' ? input : { tool, input, ...(card && { card }) }
  return { id: ask.askId, name, arguments: JSON.stringify({ ...about, ...(more as object) }) }
}
