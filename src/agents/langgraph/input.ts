import type { AgentContext } from '../../core/agent.ts'
import { validHistory } from '../../core/history.ts'
import { textOf } from '../../core/messages.ts'
import { canonical } from '../../lib/canonical.ts'
import { toLangChain } from './messages.ts'
import type { Allowed, AnyGraph, Settled } from './options.ts'
import type { CheckpointRec } from './records.ts'

/** What the graph is at: the checkpoint that the branch goes on from, and its values. */
export interface Head {
  id: string
  rec: CheckpointRec
  values: Record<string, unknown>
}

/** What a run begins with: what was said since the graph last heard, and what the client changed. */
export async function inputFor(graph: AnyGraph, options: Settled, ctx: AgentContext, head?: Head) {
  const said = ctx.messages()
  const from = said.findIndex(({ id }) => id === head?.rec.after) + 1
  const seen = idsIn(head?.values.messages)
  const fresh = validHistory(said.slice(from).filter(({ id }) => !seen.has(id)))
  const input: Record<string, unknown> = { ...stateChanges(graph, options, ctx, head) }
  if ('messages' in graph.channels) input.messages = (await ctx.whole(fresh)).map(toLangChain)
  else if ('input' in graph.channels) input.input = fresh.map(textOf).join('\n\n')
  if ('copilotkit' in graph.channels) {
    const { clientTools = [], instructions = [] } = ctx.options
    input.copilotkit = { actions: clientTools, context: instructions }
  }
  return input
}

/** What the client's copy of the state says else than the graph's, for the graph's own reducers to take. */
export function stateChanges(
  graph: AnyGraph,
  options: Settled,
  ctx: AgentContext,
  head?: Pick<Head, 'values'>,
) {
  const given = ctx.given()
  if (!given) return {}
  const now = shown(head?.values ?? {}, options)
  const changed = Object.entries(shown(Object(given.value), options)).filter(([key, value]) => {
    return key in graph.channels && canonical(value) !== canonical(now[key])
  })
  return Object.fromEntries(changed)
}

/** Channels that are not the client's: the thread has the messages, and a client its own tools. */
const others = new Set(['messages', 'copilotkit', 'tools'])

/** A graph's state as clients see it. */
export function shown(values: object, { keys }: Pick<Settled, 'keys'>): Record<string, unknown> {
  const visible = Object.entries(values).filter(([key]) => {
    return keys
      ? keys.includes(key) && key !== 'messages'
      : !others.has(key) && !key.startsWith('__')
  })
  return JSON.parse(JSON.stringify(Object.fromEntries(visible)))
}

export function idsIn(messages: unknown): Set<string> {
  const list: unknown[] = Array.isArray(messages) ? messages : []
  return new Set(list.flatMap((one) => (Object(one).id as string | undefined) ?? []))
}

/** Values that a request may set, and no others; those of the operator stand. */
export function allowed({ allow = [], values = {} }: Allowed, ctx: AgentContext) {
  const { forwarded = {} } = ctx.options
  const config = Object(forwarded.config) as Record<string, unknown>
  const places = [forwarded, forwarded.configurable, forwarded.context, config, config.configurable]
  const found = allow.flatMap((name) => {
    const place = places.map(Object).find((one) => Object.hasOwn(one, name))
    return place ? [[name, place[name]]] : []
  })
  return { ...Object.fromEntries(found), ...values } as Record<string, unknown>
}
