import { type Answer, type Ask, type Body, type Known, read } from '../core/entries.ts'
import { defaultPolicy, type Judged, judge, type PolicyRule } from '../core/policy.ts'
import type { Kept } from '../core/store.ts'
import { readInput, type Tool } from '../core/tool.ts'
import { visible } from '../lib/visible.ts'

/** What the policy is replayed with: the rules, and what is known of tools by their names. */
export interface Replaying {
  policy: readonly PolicyRule[]
  tools: ReadonlyMap<string, Tool>
  /** Names of MCP servers: their tools need not be there to be judged. */
  servers: readonly string[]
  /** Milliseconds since 1970. */
  since: number
}

export interface Replayed {
  threads: number
  /** Threads that could not be read to their end. */
  unread: number
  /** Calls that were asked about, by what the policy says of them now. */
  asks: Record<PolicyRule['decision'], Decided>
  /** Calls that nobody was asked about, by what it says now. */
  calls: Record<PolicyRule['decision'], number>
}

export interface Decided {
  total: number
  approved: number
  rejected: number
  /** Not decided by a person: by time, by the end of the run, or not yet. */
  other: number
  /** The first of those that were decided otherwise than the policy would. */
  others: Otherwise[]
}

export interface Otherwise {
  at: string
  thread: string
  title: string
  rule: string
  by: string
  reason?: string
}

const mostNamed = 20

const none = (): Decided => ({ total: 0, approved: 0, rejected: 0, other: 0, others: [] })

export const nothing = (): Replayed => ({
  threads: 0,
  unread: 0,
  asks: { allow: none(), ask: none(), deny: none() },
  calls: { allow: 0, ask: 0, deny: 0 },
})

const wanted = new Set([
  'thread.created',
  'run.queued',
  'ask.raised',
  'ask.answered',
  'effect.intended',
])

/** Adds one thread. Keeps no more of it than its open questions. */
export async function replay(
  thread: AsyncIterable<Kept | undefined>,
  given: Replaying,
  into: Replayed,
): Promise<void> {
  into.threads++
  const agents = new Map<string, string>()
  const open = new Map<string, Asked>()
  let name = ''
  for await (const kept of thread) {
    const stored = kept?.entry
    if (!stored) {
      into.unread++
      break
    }
    if (!wanted.has(stored.kind)) continue
    const entry = read(stored)
    const agent = agents.get(entry.runId ?? '') ?? ''
    if (entry.kind === 'thread.created') name = entry.body.clientId
    else if (entry.kind === 'run.queued') agents.set(entry.runId ?? '', entry.body.agent)
    else if (entry.kind === 'ask.answered') settle(entry, open, name, into)
    else if (entry.at < given.since) continue
    else if (entry.kind === 'ask.raised') ask(entry, agent, given, open, into)
    else if (entry.kind === 'effect.intended') call(entry.body, agent, given, into)
  }
}

interface Asked extends Pick<Otherwise, 'rule' | 'title'> {
  at: number
  decision: PolicyRule['decision']
}

function ask(
  { body: { ask }, at }: Known<'ask.raised'>,
  agent: string,
  given: Replaying,
  open: Map<string, Asked>,
  into: Replayed,
): void {
  // What an agent asks by itself is no matter of the policy.
  if (ask.kind !== 'approval' || ask.tool === undefined || ask.callId === undefined) return
  const tool = toolOf(ask.tool, given, ask.card)
  const { decision, rule } = judge(given.policy, { tool, agent, ...judged(ask, ask.tool, given) })
  into.asks[decision].total++
  into.asks[decision].other++
  open.set(ask.askId, { at, decision, rule, title: visible(ask.card?.title ?? ask.title) })
}

function settle(
  { body: answer, actor }: Known<'ask.answered'>,
  open: Map<string, Asked>,
  thread: string,
  into: Replayed,
): void {
  const asked = open.get(answer.askId)
  const said = actor.type === 'user' ? verdictOf(answer) : undefined
  open.delete(answer.askId)
  if (!asked || !said) return
  const decided = into.asks[asked.decision]
  decided.other--
  decided[said]++
  const otherwise = { allow: 'rejected', deny: 'approved', ask: undefined }[asked.decision]
  if (said !== otherwise || decided.others.length >= mostNamed) return
  const { rule, title, at } = asked
  decided.others.push({
    ...{ at: new Date(at).toISOString(), thread: visible(thread), title, rule },
    by: visible(actor.id),
    ...(answer.reason !== undefined && { reason: visible(answer.reason) }),
  })
}

/** An answer in place of the call is a no to the call. */
function verdictOf({ state }: Answer): 'approved' | 'rejected' | undefined {
  if (state === 'approved') return 'approved'
  return state === 'rejected' || state === 'answered' ? 'rejected' : undefined
}

function call(
  intent: Body<'effect.intended'>,
  agent: string,
  given: Replaying,
  into: Replayed,
): void {
  const { effect, askId, attempt, name, rule, grantId } = intent
  if (effect !== 'tool' || askId !== undefined || attempt > 1) return
  const reads = rule === defaultPolicy[0]!.name && { access: 'read' as const }
  const tool = { ...toolOf(name, given), ...reads }
  const { decision } = judge(given.policy, { tool, agent, ...judged(intent, name, given) })
  // What was granted is granted still, unless it is denied.
  into.calls[decision === 'ask' && grantId !== undefined ? 'allow' : decision]++
}

/** The input that the policy judges: a stored raw input is parsed, if its tool is configured now. */
function judged(
  { input, raw }: Pick<Ask, 'input' | 'raw'>,
  name: string,
  { tools }: Replaying,
): Pick<Judged, 'input' | 'shown'> {
  const tool = raw && tools.get(name)
  const read = tool && readInput(tool, input)
  return read && 'input' in read ? { input: read.input, shown: input } : { input }
}

/** As it is configured now; else as it was when it was asked about. */
function toolOf(
  name: string,
  { tools, servers }: Replaying,
  card?: Ask['card'],
): Pick<Tool, 'name' | 'server' | 'access'> {
  const known = tools.get(name)
  if (known) return known
  const server = card?.server ?? servers.find((one) => name.startsWith(`${one}__`))
  const { access } = card ?? {}
  return { name, ...(server !== undefined && { server }), ...(access && { access }) }
}
