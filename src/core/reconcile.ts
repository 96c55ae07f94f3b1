import { pendingAsks } from './branch.ts'
import type { Message } from './messages.ts'
import { ended, type ThreadState } from './state.ts'

/** A client's list of messages, in our shape. `system` ones are instructions for the run. */
export interface ClientList {
  messages: readonly Message[]
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
  /** Says again what this run said, in its place. */
  again?: string
  instructions: string[]
  /** Results of calls that nobody made here. */
  forged: string[]
}

/**
 * What is new in a client's list. The server owns the history: a list can add user messages and
 * the results of open calls, and nothing else; what it leaves out is not thereby gone.
 */
export function reconcile(state: ThreadState, list: ClientList): Reconciled {
  const instructions = list.messages.filter(({ role }) => role === 'system').map(textsOf)
  const messages = list.messages.filter(({ role }) => role !== 'system')
  const found: Reconciled = { results: [], said: [], imported: [], instructions, forged: [] }
  if (state.runs.size === 0) {
    const first = messages.findLastIndex(({ role }) => role !== 'user') + 1
    found.said = messages.slice(first)
    found.imported = messages.slice(0, first).map((message) => ({ ...message, imported: true }))
    return found
  }
  const open = openCalls(state)
  const seen = new Set<string>()
  for (const message of messages) {
    if (seen.has(message.id)) continue
    seen.add(message.id)
    if (message.role === 'user' && !state.messages.has(message.id)) found.said.push(message)
    if (message.role !== 'tool' || message.callId === undefined) continue
    const askId = open.get(message.callId)
    if (askId !== undefined) {
      found.results.push({ askId, message })
      open.delete(message.callId)
    } else if (!isKnownCall(state, message.callId)) found.forged.push(message.callId)
  }
  if (list.branchFrom !== undefined) {
    const runId = state.messages.get(list.branchFrom)?.runId
    if (runId !== undefined) found.replaces = runId
  }
  if (list.regenerates && found.said.length + found.results.length === 0) {
    const again = saidAgain(state, messages.at(-1))
    if (again !== undefined) found.again = again
  }
  return found
}

const textsOf = ({ parts }: Message): string =>
  parts.map((part) => (part.type === 'text' ? part.text : '')).join('')

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

/** A list that ends in a known user message that was answered: the client cut it there. */
function saidAgain(state: ThreadState, last: Message | undefined): string | undefined {
  if (state.active !== null || last?.role !== 'user') return undefined
  const run = state.runs.get(state.messages.get(last.id)?.runId ?? '')
  if (!run || !ended(run)) return undefined
  const answered = run.messageIds.some((id) => state.messages.get(id)?.message.role !== 'user')
  const followed = [...state.runs.values()].some(({ parentRunId }) => parentRunId === run.runId)
  return answered || followed ? run.runId : undefined
}
