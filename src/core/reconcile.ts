import { sameJson } from '../lib/json-patch.ts'
import { pendingAsks } from './branch.ts'
import { type Message, textOf } from './messages.ts'
import { ended, type ThreadState } from './state.ts'

/** A client's list of messages, in our shape. `system` ones are instructions for the run. */
export interface ClientList {
  messages: readonly Message[]
  /** What the client calls this request: with the label that began a run, it is that request again. */
  request?: string
  /** Whether a list that ends in a known user message means "again". */
  regenerates: boolean
  /** An edit: the message in whose place the new one stands. */
  branchFrom?: string
}

export interface Reconciled {
  /** Results of calls that wait for this client, by ask. */
  results: { askId: string; message: Message }[]
  /** User messages that the thread does not know yet, oldest first. */
  said: Message[]
  /** What a new thread's first request brings along; nobody vouches for it. */
  imported: Message[]
  /** The run in whose place the next one stands. */
  replaces?: string
  /** The message of that run in whose place the new one stands. */
  instead?: string
  /** Says again what this run said, in its place. */
  again?: string
  instructions: string[]
  /** Results of calls that nobody made here. */
  forged: string[]
  /** Says something else than an earlier message of its id, or result of its call. */
  contradicts?: Message
}

/**
 * What is new in a client's list. The server owns the history: a list can add user messages and
 * the results of open calls, and nothing else; what it leaves out is not thereby gone.
 */
export function reconcile(state: ThreadState, list: ClientList): Reconciled {
  const instructions = list.messages.filter(({ role }) => role === 'system').map(textOf)
  const all = list.messages.filter(({ role }) => role !== 'system')
  const messages = unique(all)
  const open = openCalls(state)
  const contradicts = unlike(state, open, all)
  const found: Reconciled = { results: [], said: [], imported: [], instructions, forged: [] }
  if (contradicts) found.contradicts = contradicts
  if (state.runs.size === 0) {
    const first = messages.findLastIndex(({ role }) => role !== 'user') + 1
    found.said = messages.slice(first)
    found.imported = messages.slice(0, first).map((message) => ({ ...message, imported: true }))
    return found
  }
  for (const message of messages) {
    // What was refused stays in clients' lists; only at their end is it said again.
    const refused = state.refused.has(message.id) && message !== messages.at(-1)
    const isNew = message.role === 'user' && !state.messages.has(message.id)
    if (isNew && !refused) found.said.push(message)
    if (message.role !== 'tool' || message.callId === undefined) continue
    const askId = open.get(message.callId)
    if (askId !== undefined) {
      if (!found.results.some((one) => one.askId === askId)) found.results.push({ askId, message })
    } else if (!(isKnownCall(state, message.callId) || state.messages.has(message.id)))
      found.forged.push(message.callId)
  }
  if (list.branchFrom !== undefined && found.said.length > 0) {
    const runId = state.messages.get(list.branchFrom)?.runId
    if (runId !== undefined) Object.assign(found, { replaces: runId, instead: list.branchFrom })
  }
  if (list.regenerates && found.said.length + found.results.length === 0) {
    const again = saidAgain(state, messages.at(-1), list.request)
    if (again !== undefined) found.again = again
  }
  return found
}

function unique(messages: readonly Message[]): Message[] {
  const seen = new Set<string>()
  return messages.filter(({ id }) => !seen.has(id) && seen.add(id))
}

/** Two messages of users under one id, or two results of one open call, which are not the same. */
function unlike(
  state: ThreadState,
  open: ReadonlyMap<string, string>,
  messages: readonly Message[],
): Message | undefined {
  const first = new Map<string, Message>()
  return messages.find((message) => {
    const { role, id, callId = '' } = message
    const known = state.messages.get(id)?.message.role
    if (role === 'user' && known !== undefined) return known !== 'user'
    const what = role === 'user' ? id : role === 'tool' ? open.get(callId) : undefined
    if (what === undefined) return false
    const before = first.get(what)
    if (!before) first.set(what, message)
    return before !== undefined && !sameJson(before.parts, message.parts)
  })
}

/** Asks that a tool message can answer: by the id of the call, or of the ask shown as one. */
function openCalls(state: ThreadState): Map<string, string> {
  const open = new Map<string, string>()
  const run = state.runs.get(state.active ?? '')
  for (const { ask } of run ? pendingAsks(state, run) : []) {
    open.set(ask.askId, ask.askId)
    if (ask.kind === 'client_tool' && ask.callId !== undefined) open.set(ask.callId, ask.askId)
  }
  return open
}

const isKnownCall = (state: ThreadState, callId: string): boolean =>
  state.calls.has(callId) || state.asks.has(callId)

/** A list that ends in what an ended run was asked, in a request that is not the one that asked. */
function saidAgain(state: ThreadState, last: Message | undefined, request: string | undefined) {
  if (state.active !== null || last?.role !== 'user') return undefined
  const run = state.runs.get(state.messages.get(last.id)?.runId ?? '')
  if (!run || !ended(run) || run.parentRunId === undefined) return undefined
  return request !== undefined && run.requests.includes(request) ? undefined : run.runId
}
