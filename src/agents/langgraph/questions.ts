import type { Question } from '../../core/agent.ts'
import type { Answer } from '../../core/entries.ts'
import { canonical } from '../../lib/canonical.ts'
import type { AnyGraph } from './options.ts'
import type { Records, Text } from './records.ts'

/** Something that a node asked by `interrupt()`. */
export interface Interrupt {
  id: string
  value: unknown
  response_schema?: unknown
  /** How many answers its task has had before: a node may ask several times. */
  turn: number
}

/** What a node that waits in the ledger is interrupted with: it is run again, and nobody is asked. */
export const waits = 'handrail.waits'

/** Channels of writes that say how a task is, and nothing of the state. */
const notes = new Set([
  '__error__',
  '__scheduled__',
  '__interrupt__',
  '__resume__',
  '__error_source_node__',
])

/**
 * The interrupts that the graph stands at, of subgraphs too. They are read from what each task wrote: LangGraph
 * itself shows one for a subgraph, however many of its tasks ask.
 */
export function interruptsAt(records: Records, headId: string): Interrupt[] {
  const found = new Map<string, Interrupt>()
  const look = (ns: string, id: string | undefined) => {
    if (id === undefined) return
    const tasks = new Map<string, ReturnType<Records['writes']>>()
    for (const write of records.writes(ns, id))
      tasks.set(write.taskId, [...(tasks.get(write.taskId) ?? []), write])
    for (const [taskId, writes] of tasks) {
      if (writes.some(({ channel }) => !notes.has(channel))) continue // it is done
      const asked = writes.find(({ channel }) => channel === '__interrupt__')
      if (!asked) continue
      const below = [...records.checkpoints.keys()].filter((one) => isBelow(one, ns, taskId))
      for (const one of below) look(one, records.last(one))
      const interrupt = read(asked.value) as Omit<Interrupt, 'turn'>
      const resumed = writes.find(({ channel }) => channel === '__resume__')
      const turn = resumed ? [read(resumed.value)].flat().length : 0
      if (!found.has(interrupt.id)) found.set(interrupt.id, { ...interrupt, turn })
    }
  }
  look('', headId)
  return [...found.values()].filter(({ value }) => value !== waits)
}

/** Whether a namespace is that of a subgraph that this task runs. */
function isBelow(ns: string, above: string, taskId: string): boolean {
  const rest = above === '' ? ns : ns.startsWith(`${above}|`) ? ns.slice(above.length + 1) : ''
  return rest.split('|')[0]?.endsWith(`:${taskId}`) ?? false
}

const read = ({ text }: Text): unknown => JSON.parse(text)

/** A node's question as one that every wire can show. What it is follows from its shape. */
export function questionOf({ id, value, response_schema: schema, turn }: Interrupt): Question {
  const key = `interrupt:${id}:${turn}`
  const said = Object(value) as Record<string, unknown>
  const title = titleOf(value)
  const timeout = typeof said.timeoutSeconds === 'number' && {
    timeout: said.timeoutSeconds * 1_000,
  }
  const more = { ...(schema !== undefined && { schema }), ...timeout }
  return { kind: isApproval(said) ? 'approval' : 'input', key, title, input: value, ...more }
}

/** Asked for a yes or no: said to be one, or a request of LangChain's human-in-the-loop middleware. */
const isApproval = (said: Record<string, unknown>): boolean =>
  said.kind === 'approval' || said.type === 'approval' || requestsOf(said) !== undefined

function requestsOf({ actionRequests, action_requests }: Record<string, unknown>) {
  const requests = actionRequests ?? action_requests
  return Array.isArray(requests) ? (requests as Record<string, unknown>[]) : undefined
}

/** The words that people put a question in, as different libraries call them. */
const words = ['title', 'question', 'message', 'description', 'prompt', 'reason'] as const

function titleOf(value: unknown): string {
  if (typeof value === 'string' && value !== '') return value
  const said = Object(value) as Record<string, unknown>
  const named = { ...said, ...Object(said.__copilotkit_interrupt_value__) } as Record<
    string,
    unknown
  >
  const given = words
    .map((word) => named[word])
    .find((one) => typeof one === 'string' && one !== '')
  if (given !== undefined) return given as string
  const names = requestsOf(said)?.map(({ name, action }) => String(name ?? action ?? 'something'))
  return names ? `Run ${names.join(', ')}` : 'The agent asks for input.'
}

/** What `interrupt()` gives to the node. */
export function resumeOf({ value }: Interrupt, answer: Answer): unknown {
  if (answer.state === 'answered') return answer.value
  const approved = answer.state === 'approved'
  const { reason } = answer
  const requests = requestsOf(Object(value))
  if (requests) {
    const no = { type: 'reject', ...(reason !== undefined && { message: reason }) }
    return { decisions: requests.map(() => (approved ? { type: 'approve' } : no)) }
  }
  const said = { approved, ...(reason !== undefined && { reason }) }
  return answer.state === 'timeout' || answer.state === 'cancelled'
    ? { ...said, [answer.state]: true }
    : said
}

/** A place where the graph was told to stop before or after a node, whatever the node does. */
export async function breakpointAt(
  graph: AnyGraph,
  records: Records,
  threadId: string,
  headId: string,
): Promise<Question | undefined> {
  const { interruptBefore = [], interruptAfter = [] } = graph
  if (interruptBefore.length + interruptAfter.length === 0) return undefined
  const { next } = await graph.getState({ configurable: { thread_id: threadId } })
  if (next.length === 0) return undefined
  const before = next.filter((name) => isAmong(name, interruptBefore))
  const after = nodesBefore(records, headId).filter((name) => isAmong(name, interruptAfter))
  if (before.length + after.length === 0) return undefined
  const title =
    after.length > 0 ? `Go on after ${after.join(', ')}?` : `Go on with ${before.join(', ')}?`
  return { kind: 'approval', key: `breakpoint:${headId}`, title, input: { next } }
}

const isAmong = (name: string, names: '*' | readonly PropertyKey[]): boolean =>
  names === '*' || names.includes(name)

/** The nodes that the step to this checkpoint ran: those that have seen more since the one before. */
function nodesBefore(records: Records, headId: string): string[] {
  const seenAt = (id: string | undefined) => {
    const text = id === undefined ? undefined : records.find('', id)?.checkpoint
    const { versions_seen = {} } = text ? (JSON.parse(text) as { versions_seen?: object }) : {}
    return Object.entries(versions_seen).map(([name, seen]) => [name, canonical(seen)] as const)
  }
  const before = new Map(seenAt(records.find('', headId)?.parentId))
  return seenAt(headId).flatMap(([name, seen]) => (before.get(name) === seen ? [] : [name]))
}
