import { answerOf } from '../../core/asks.ts'
import { pendingAsks } from '../../core/branch.ts'
import type { RunOptions } from '../../core/entries.ts'
import { RuntimeError } from '../../core/errors.ts'
import { type Cursor, cursorAt, follow } from '../../core/follow.ts'
import type { Message } from '../../core/messages.ts'
import { type Reconciled, reconcile } from '../../core/reconcile.ts'
import type { Caller, Runtime } from '../../core/runtime.ts'
import { emptyState, ended, type ThreadState } from '../../core/state.ts'
import type { Thread } from '../../core/thread.ts'
import { canonical } from '../../lib/canonical.ts'
import { json } from '../http.ts'
import { sse, sseText } from '../sse.ts'
import { decisionFrom, openAsks } from './asks.ts'
import { fromClient } from './messages.ts'
import type { RunInput } from './shapes.ts'
import { suggestion } from './suggest.ts'
import { type Listener, Telling } from './telling.ts'
import type { AguiOptions } from './wire.ts'

/** What AG-UI clients do with a thread: say, answer, join, stop. */
export function aguiRuns({ runtime, heartbeats, whenBusy }: AguiOptions) {
  const known = (agentId: string): string => {
    for (const { agent, aliases } of runtime.agents()) {
      if (agent.name === agentId || aliases.includes(agentId)) return agent.name
    }
    throw new RuntimeError('agent_not_found', `Agent '${agentId}' does not exist`)
  }

  /** A stream of events of one run, from a cursor on. */
  const tell = (thread: Thread, from: Cursor, telling: Telling, opening: string[]) =>
    sse((signal) => frames(thread, from, telling, opening, signal), heartbeats)

  /** The thread as it is, and, when something runs, what happens to it. */
  const join = (thread: Thread, to: Listener): Response => {
    const { state, tail } = thread
    const runId = state.active ?? state.head ?? ''
    const telling = new Telling(to, state, runId)
    const run = state.runs.get(runId)
    const live = run && !ended(run) && run.status !== 'waiting'
    const opening = [telling.started(), ...telling.snapshot(live ? tail.pieces : [])]
    if (!live) return once([...opening, ...telling.end()])
    const { fence } = tail
    const offset = tail.seq === state.seq ? tail.pieces.length : 0
    return tell(thread, { seq: state.seq, frames: 0, fence, offset }, telling, opening)
  }

  const once = (events: string[]) =>
    sse(async function* () {
      yield events.map((data) => sseText('0', { data })).join('')
    }, heartbeats)

  const refuse = (error: RuntimeError) => {
    const { code, message } = error
    return once([JSON.stringify({ type: 'RUN_ERROR', message, code })])
  }

  async function run(caller: Caller, agentId: string, input: RunInput): Promise<Response> {
    const agent = known(agentId)
    if (isSuggestion(input)) return await suggest(agentId, input)
    const to = listenerOf(input)
    const thread = await runtime.find(caller, input.threadId)
    const state = thread?.state ?? emptyState('')
    const news = reconcile(state, clientList(input))
    try {
      if (news.forged.length > 0) {
        const fix = `toolCallId ${news.forged[0]}: no such call was made on this thread.`
        throw new RuntimeError('result_unknown', fix, { field: 'messages' })
      }
      const from = state.seq
      const answered = thread ? await answerAll(caller, thread, input, news, to) : []
      if (news.said.length > 0 || news.again !== undefined) {
        return await say(caller, agent, input, news, to)
      }
      if (!thread)
        return once([new Telling(to, state, '').started(), ...new Telling(to, state, '').end()])
      if (answered.length === 0) return join(thread, to)
      const telling = new Telling(to, thread.state, thread.state.active ?? thread.state.head ?? '')
      telling.has(news.results.flatMap(({ message }) => message.callId ?? []))
      return tell(thread, cursorAt(from), telling, [telling.started()])
    } catch (error) {
      if (error instanceof RuntimeError && inStream.has(error.code)) return refuse(error)
      throw error
    }
  }

  /** Answers what the request answers: results of calls, stand-ins, and resumes. */
  async function answerAll(
    caller: Caller,
    thread: Thread,
    input: RunInput,
    { results }: Reconciled,
    { tools }: Listener,
  ): Promise<string[]> {
    const { state } = thread
    const open = state.runs.get(state.active ?? '')
    const pending = open ? pendingAsks(state, open) : []
    const decisions = results.map(({ askId, message }) => {
      const { ask } = state.asks.get(askId)!
      const text = message.parts.map((part) => (part.type === 'text' ? part.text : '')).join('')
      return { askId, said: decisionFrom(ask, text, 'messages') }
    })
    for (const [i, { interruptId, status, payload }] of (input.resume ?? []).entries()) {
      const record = state.asks.get(interruptId)
      if (!record) {
        const fix = `resume.${i}.interruptId: ${interruptId} is not an interrupt of this thread.`
        throw new RuntimeError('interrupt_unknown', fix, { field: `resume.${i}.interruptId` })
      }
      if (record.answer) continue // settled already: told by what is shown next
      const gone = { approved: false, reason: 'The user dismissed the question.' }
      const said =
        status === 'cancelled' ? gone : decisionFrom(record.ask, payload, `resume.${i}.payload`)
      decisions.push({ askId: interruptId, said })
    }
    if (decisions.length === 0) return []
    if (input.resume) {
      const interrupts = open ? openAsks(state, open, tools).interrupts : []
      const missing = interrupts.find(
        ({ ask }) => !decisions.some(({ askId }) => askId === ask.askId),
      )
      if (missing) {
        const fix = `resume: ${missing.ask.askId} is open too. Answer all open interrupts together.`
        throw new RuntimeError('interrupt_uncovered', fix, { field: 'resume' })
      }
    }
    // All are checked before the first is written.
    for (const { askId, said } of decisions) answerOf(pending, askId, said, runtime.tools)
    for (const { askId, said } of decisions) {
      await runtime.answer(caller, input.threadId, askId, said)
    }
    return decisions.map(({ askId }) => askId)
  }

  async function say(
    caller: Caller,
    agent: string,
    input: RunInput,
    news: Reconciled,
    to: Listener,
  ): Promise<Response> {
    const thread = await runtime.find(caller, input.threadId)
    const state = thread?.state ?? emptyState('')
    const active = state.runs.get(state.active ?? '')
    let busy: 'reject' | 'queue' | 'cancel' = whenBusy
    if (active?.status === 'waiting') {
      const { interrupts } = openAsks(state, active, to.tools)
      if (interrupts[0]) {
        const { askId, title } = interrupts[0].ask
        const fix = `This thread waits for an answer first: ${title} (${askId}). Send it as resume.`
        throw new RuntimeError('thread_waiting', fix, { data: { asks: [askId] } })
      }
      busy = 'cancel' // a question shown as a card does not block: typing on passes over it
    }
    const { replaces = news.again } = news
    const messages = news.again === undefined ? news.said : saidBefore(state, news.again, runtime)
    const copy = stateFor(state, agent, input.state)
    const started = await runtime.start(caller, input.threadId, {
      messages,
      imported: news.imported,
      agent,
      whenBusy: busy,
      options: optionsFrom(input, news),
      ...(replaces !== undefined && { replaces }),
      ...(copy && { state: copy }),
    })
    const run = started.thread.state.runs.get(started.runId)!
    if (!started.fresh) return join(started.thread, to)
    const telling = new Telling(to, started.thread.state, started.runId)
    return tell(started.thread, cursorAt(run.firstSeq - 1), telling, [telling.started()])
  }

  async function connect(caller: Caller, agentId: string, input: RunInput): Promise<Response> {
    known(agentId)
    const thread = await runtime.find(caller, input.threadId)
    if (!thread || thread.state.runs.size === 0) return once([])
    return join(thread, listenerOf(input))
  }

  async function stop(caller: Caller, agentId: string, threadId: string): Promise<Response> {
    known(agentId)
    const thread = await runtime.find(caller, threadId)
    const runId = thread?.state.active
    const nothing = { stopped: false, message: `No active run for thread '${threadId}'.` }
    if (!runId) return json(nothing)
    await runtime.cancel(caller, threadId, runId).catch((error: unknown) => {
      if (!(error instanceof RuntimeError && error.code === 'run_ended')) throw error
    })
    const interrupt = { type: 'RUN_ERROR', message: 'Run stopped by user', code: 'STOPPED' }
    return json({ stopped: true, interrupt })
  }

  async function suggest(agentId: string, input: RunInput): Promise<Response> {
    const agent = known(agentId)
    return sse((signal) => suggestion(runtime, agent, input, signal), heartbeats)
  }

  return { run, connect, stop, suggest }
}

/** Errors that the protocol tells inside the stream; the others are HTTP statuses. */
const inStream = new Set<string>([
  'result_unknown',
  'interrupt_unknown',
  'interrupt_uncovered',
  'thread_waiting',
  'invalid_request',
])

async function* frames(
  thread: Thread,
  from: Cursor,
  telling: Telling,
  opening: string[],
  signal: AbortSignal,
): AsyncGenerator<string, void, undefined> {
  let batch = opening.map((data) => sseText(String(from.seq), { data })).join('')
  const add = (id: string, events: string[]) => {
    for (const data of events) batch += sseText(id, { data })
  }
  for await (const step of follow(thread, from, signal)) {
    if (step.type === 'pieces') {
      let offset = step.from
      const place = `${step.seq}.${step.fence}.`
      for (const piece of step.pieces) add(place + ++offset, telling.piece(piece))
    } else if (step.type === 'entry') {
      add(String(step.entry.seq), telling.entry(step.entry))
      if (telling.over) {
        yield batch
        return
      }
    }
    const idle = step.type === 'idle' || (step.type === 'pieces' && step.idle)
    if (batch.length >= 16_384 || (idle && batch)) {
      yield batch
      batch = ''
    }
  }
}

function listenerOf({ threadId, runId, tools, protocolVersion }: RunInput): Listener {
  const protocol = protocolVersion?.startsWith('1') ? '1' : '0'
  return { threadId, runId, protocol, tools: new Set((tools ?? []).map(({ name }) => name)) }
}

function clientList(input: RunInput) {
  const messages = (input.messages ?? []).flatMap((one) => fromClient(one) ?? [])
  const branchFrom = handrailProps(input).branchFrom
  return {
    messages,
    regenerates: true,
    ...(typeof branchFrom === 'string' && { branchFrom }),
  }
}

function handrailProps({ forwardedProps }: RunInput): Record<string, unknown> {
  const { handrail } = (forwardedProps ?? {}) as { handrail?: unknown }
  return typeof handrail === 'object' && handrail !== null
    ? (handrail as Record<string, unknown>)
    : {}
}

function isSuggestion({ forwardedProps }: RunInput): boolean {
  const props = forwardedProps as
    | { toolChoice?: { function?: { name?: unknown } } }
    | null
    | undefined
  return props?.toolChoice?.function?.name === 'copilotkitSuggest'
}

function optionsFrom(input: RunInput, { instructions }: Reconciled): RunOptions {
  const context = (input.context ?? []).map(({ description, value }) => `${description}: ${value}`)
  const clientTools = (input.tools ?? []).map(({ name, description, parameters }) => ({
    name,
    ...(description !== undefined && { description }),
    parameters,
  }))
  const { forwardedProps } = input
  const forwarded =
    typeof forwardedProps === 'object' && forwardedProps !== null
      ? (forwardedProps as Record<string, unknown>)
      : {}
  return { instructions: [...instructions, ...context], clientTools, forwarded }
}

/** The client's copy of the state, when it says something and something else than we have. */
function stateFor(
  state: ThreadState,
  agent: string,
  value: unknown,
): { value: unknown } | undefined {
  if (typeof value !== 'object' || value === null || Object.keys(value).length === 0)
    return undefined
  if (canonical(value) === canonical(state.states.get(agent))) return undefined
  return { value }
}

function saidBefore(state: ThreadState, runId: string, { newId }: Runtime): Message[] {
  const ids = state.runs.get(runId)?.messageIds ?? []
  return ids.flatMap((id) => {
    const message = state.messages.get(id)?.message
    return message?.role === 'user' ? [{ ...message, id: newId('msg') }] : []
  })
}
