import type { Known } from '../../core/entries.ts'
import { RuntimeError } from '../../core/errors.ts'
import { cursorAt } from '../../core/follow.ts'
import { type RequestKey, usedKey } from '../../core/keys.ts'
import { type Message, textOf } from '../../core/messages.ts'
import { type Reconciled, reconcile } from '../../core/reconcile.ts'
import { isSettled, type Meant } from '../../core/refusals.ts'
import type { Caller, Runtime } from '../../core/runtime.ts'
import { type AskRecord, emptyState, ended, type ThreadState } from '../../core/state.ts'
import type { Thread } from '../../core/thread.ts'
import { pauseBefore } from '../../lib/pause.ts'
import { openAsks, waitsInside } from '../asks.ts'
import { refuseContradiction } from '../decisions.ts'
import { json } from '../http.ts'
import { refuseManyNew } from '../limits.ts'
import { type Resumed, resumedBy, unknownPlace } from '../resume.ts'
import { answersIn } from './answers.ts'
import { custom, type EventText, event } from './events.ts'
import {
  busyWish,
  clientList,
  isSuggestion,
  isUpToDate,
  keyFor,
  listenerOf,
  optionsFrom,
  stateFrom,
} from './input.ts'
import type { RunInput } from './shapes.ts'
import { marks, type Opening, type Reply, replyTo } from './stream.ts'
import { suggestion } from './suggest.ts'
import { type Listener, Telling } from './telling.ts'
import type { AguiOptions } from './wire.ts'

/** One request, and what it is answered with. */
interface Asked {
  caller: Caller
  agent: string
  input: RunInput
  to: Listener
  reply: Reply
  request: Request
  key?: RequestKey
}

/** What AG-UI clients do with a thread: say, answer, join, stop. */
export function aguiRuns({ runtime, heartbeats, whenBusy }: AguiOptions) {
  const known = (agentId: string): string => {
    const agent = runtime.agent(agentId)
    if (agent) return agent.name
    throw new RuntimeError('agent_not_found', `Agent '${agentId}' does not exist`)
  }

  async function asked(caller: Caller, agentId: string, input: RunInput, request: Request) {
    const agent = known(agentId)
    const reply = await replyTo(request, heartbeats)
    return { caller, agent, input, to: listenerOf(input), reply, request }
  }

  async function run(caller: Caller, agentId: string, input: RunInput, request: Request) {
    const one = await asked(caller, agentId, input, request)
    if (isSuggestion(input)) return suggest(one)
    const resumed = await resumedBy(request, runtime, caller, input.threadId)
    if (resumed) return await resume(one, resumed)
    const keyed = { ...one, ...keyFor(request, one.agent, input) }
    try {
      return await take(keyed)
    } catch (error) {
      const meant = meantBy(input)
      if (meant.ask !== undefined) runtime.answers.refused(caller, meant, error)
      if (!(error instanceof RuntimeError && inStream.has(error.code))) throw error
      if (error.field?.startsWith('body.')) throw error // a body that cannot be read at all
      return refuse(one, error)
    }
  }

  /** Answers first, then what is said; without either, the thread as it is. */
  async function take(one: Asked): Promise<Response> {
    const { caller, agent, input, to } = one
    const thread = await runtime.find(caller, input.threadId)
    const state = thread?.state ?? emptyState('')
    usedKey(state, one.key) // before answers are recorded, so that a refused request changes nothing
    const news = reconcile(state, clientList(input, state))
    refuseManyNew([...news.imported, ...news.said], 'body.messages')
    if (news.forged.length > 0) throw forged(news.forged[0]!)
    refuseContradiction(news)
    const { decisions, settled } = answersIn(state, input, news, to.tools)
    const meant = meantBy(input)
    if (decisions.length === 0 && isSettled(state, meant.ask)) runtime.answers.late(caller, meant)
    const says = news.said.length > 0 || news.again !== undefined
    const inLine = busyWish(input) === 'queue' && decisions.length > 0
    if (says && !inLine && decisions.every(({ askId }) => isCall(state, askId)))
      return await say(one, news)
    if (!thread && meant.ask !== undefined) throw forged(meant.ask)
    if (!thread) return one.reply.once(emptyRun(to))
    // What was refused stays in the client's list, and comes along with its answers.
    const saysNew = () => says && news.said.some(({ id }) => !state.refused.has(id))
    const seq = state.seq
    if (decisions.length > 0) {
      const current = isUpToDate(state, input, to)
      // Before anything counts: what is refused changes nothing.
      if (saysNew()) await runtime.admits(caller, input.threadId, { messages: news.said, agent })
      const options = optionsFrom(input, news, one.request)
      const more = { request: input.runId, ...stateFrom(input, state, agent), options }
      const done = await runtime.answer(caller, input.threadId, { decisions, ...more })
      const late = decisions.filter(({ askId }) => !done.settled.has(askId))
      settled.push(...late.map(({ askId }) => state.asks.get(askId)!))
      if (done.settled.size === 0) refuseLate(settled)
      else if (saysNew()) return await say(one, news, 'queue')
      else if (settled.length === 0) return goOn(one, thread, current ? seq : undefined)
    }
    return join(one, thread, settled)
  }

  /**
   * The leg that the answers begin; where others are still open, those are shown. Without `seq`, whoever answers
   * is first given the list as it is.
   */
  function goOn(one: Asked, thread: Thread, seq: number | undefined): Response {
    const { state } = thread
    const runId = state.active ?? state.head ?? ''
    const run = state.runs.get(runId)
    const waits = run?.status === 'waiting' || waitsInside(state, run)
    if (waits || seq === undefined) return join(one, thread)
    const telling = new Telling(one.to, thread, runId)
    return one.reply.tell(thread, cursorAt(seq), telling, beginning(telling))
  }

  async function say(one: Asked, news: Reconciled, busy?: 'queue'): Promise<Response> {
    const { caller, agent, input, to, key } = one
    const thread = await runtime.find(caller, input.threadId)
    const state = thread?.state ?? emptyState('')
    // A request that is sent again starts nothing, so no open question refuses it.
    const wish = busy ?? busyWish(input) ?? (usedKey(state, key) && 'reject')
    const { replaces = news.again } = news
    const { thread: written, ...begun } = await runtime.start(caller, input.threadId, {
      messages: news.again === undefined ? news.said : saidLast(state, news.again, runtime),
      imported: news.imported,
      results: resultsOf(news),
      agent,
      whenBusy: wish ?? howBusy(state, to, whenBusy),
      options: optionsFrom(input, news, one.request),
      request: input.runId,
      ...(replaces !== undefined && { replaces }),
      ...(news.instead !== undefined && { instead: news.instead }),
      ...stateFrom(input, state, agent),
      ...(key && { key }),
    })
    await pauseBefore(written.state.messages.size) // the snapshot of a long thread takes milliseconds
    // In line behind what waits for an answer: that is what there is to tell.
    const ahead = written.state.runs.get(written.state.active ?? '')
    if (!begun.fresh || (ahead?.status === 'waiting' && ahead.runId !== begun.runId))
      return join(one, written)
    const telling = new Telling(to, written, begun.runId)
    const { firstSeq } = written.state.runs.get(begun.runId)!
    const next = written.state.active === begun.runId && replaces === undefined
    if (!(next && isUpToDate(written.state, input, to))) return follow(one, written, telling)
    return one.reply.tell(written, cursorAt(firstSeq - 1), telling, beginning(telling))
  }

  /** The thread as it is, and, when something runs, what happens to it. */
  function join(one: Asked, thread: Thread, settled: readonly AskRecord[] = []): Response {
    const { state } = thread
    const telling = new Telling(one.to, thread, state.active ?? state.head ?? '')
    return joinRun(one, thread, telling, (all) => joined(all, settled))
  }

  /** `open` makes the first events of the client that joins; `had`: how many of them it has. */
  function joinRun(
    one: Asked,
    thread: Thread,
    telling: Telling,
    open: (telling: Telling) => EventText[],
    had = 0,
  ): Response {
    const { state } = thread
    const run = state.runs.get(telling.runId)
    const works = run && !ended(run) && run.status !== 'waiting' && !waitsInside(state, run)
    if (works) return follow(one, thread, telling, open, had)
    const events = [...open(telling), ...telling.end()]
    return one.reply.show(thread, telling.runId, { events, mark: marks.joined, had })
  }

  /** Taken in one step: the snapshot, and the place in the tail from which it is told. */
  function follow(
    one: Asked,
    thread: Thread,
    telling: Telling,
    open: (telling: Telling) => EventText[] = (all) => joined(all, []),
    had = 0,
  ) {
    const { state, tail } = thread
    const events = open(telling)
    const offset = tail.seq === state.seq ? tail.pieces.length : 0
    const sent = tail.sentBefore(offset)
    const from = { seq: state.seq, frames: 0, fence: tail.fence, offset, sent }
    return one.reply.tell(thread, from, telling, { events, mark: marks.joined, had })
  }

  /** The stream of a run after the event that the client had last; nothing is started. */
  async function resume(one: Asked, { thread, run, cursor }: Resumed): Promise<Response> {
    const telling = new Telling(one.to, thread, run.runId)
    const [, , mark = ''] = cursor.names ?? []
    const count = Number(mark.slice(1))
    if (mark === marks.over) return one.reply.once([])
    if (mark.startsWith(marks.begun)) {
      const events = telling.begin().slice(count)
      return one.reply.tell(thread, cursor, telling, { events, mark: marks.begun, had: count })
    }
    // In the middle of a snapshot, or with an id of an older server: the snapshot again, as things stand now.
    if (mark.startsWith(marks.joined) || !cursor.names)
      return joinRun(one, thread, telling, (all) => joined(all, []).slice(1), count || 1)
    const told = mark.startsWith(marks.told) ? count : 0
    telling.resume(await entriesUpTo(thread, run.firstSeq - 1, cursor.seq), cursor.sent, told)
    const brackets = mark.startsWith(marks.brackets) ? count : 0
    return one.reply.tell(thread, cursor, telling, { events: [], mark: marks.begun }, brackets)
  }

  async function connect(caller: Caller, agentId: string, input: RunInput, request: Request) {
    const one = await asked(caller, agentId, input, request)
    // An id that names no run is of an older server: that client is shown the thread as it is.
    const namesRun = request.headers.get('last-event-id')?.includes('@')
    const resumed = namesRun && (await resumedBy(request, runtime, caller, input.threadId))
    if (resumed) return await resume(one, resumed)
    const thread = await runtime.find(caller, input.threadId)
    if (!thread || thread.state.runs.size === 0) return one.reply.once([])
    return join(one, thread)
  }

  /** `label` names the run to stop, as the client called it; without it, whatever runs. */
  async function stop(caller: Caller, agentId: string, threadId: string, label?: string) {
    known(agentId)
    const thread = await runtime.find(caller, threadId)
    const run = thread?.state.runs.get(thread.state.active ?? '')
    const other = label !== undefined && run && run.requests.length > 0
    if (!run || (other && !run.requests.includes(label))) {
      return json({ stopped: false, message: `No active run for thread '${threadId}'.` })
    }
    await runtime.cancel(caller, threadId, run.runId).catch((error: unknown) => {
      if (!(error instanceof RuntimeError && error.code === 'run_ended')) throw error
    })
    const interrupt = { type: 'RUN_ERROR', message: 'Run stopped by user', code: 'STOPPED' }
    return json({ stopped: true, interrupt })
  }

  const suggest = ({ reply, caller, agent, input, request }: Asked): Response => {
    if (request.headers.get('last-event-id')) throw unknownPlace() // suggestions have no ids
    return reply.live((signal) => suggestion(runtime, caller, agent, input, signal))
  }

  return {
    run,
    connect,
    stop,
    suggest: async (caller: Caller, agentId: string, input: RunInput, request: Request) =>
      suggest(await asked(caller, agentId, input, request)),
  }
}

/** What a request is sent to answer, by a resume or by the result that it ends in; it may be nothing. */
function meantBy({ threadId: thread, resume, messages }: RunInput): Meant {
  const { role, toolCallId } = Object(messages?.at(-1)) as { role?: unknown; toolCallId?: unknown }
  const ask = resume?.[0]?.interruptId ?? (role === 'tool' ? toolCallId : undefined)
  return { thread, ...(typeof ask === 'string' && { ask }) }
}

/** Errors that the protocol tells inside the stream; the others are HTTP statuses. */
const inStream = new Set<string>([
  'result_unknown',
  'interrupt_unknown',
  'interrupt_uncovered',
  'interrupt_expired',
  'not_yours_to_decide',
  'ask_differs',
  'thread_waiting',
  'invalid_request',
  'guardrail',
  'guardrail_away',
])

const refuse = ({ reply }: Asked, { code, message }: RuntimeError): Response =>
  reply.once([event('RUN_ERROR', { message, code })])

const forged = (callId: string) =>
  new RuntimeError(
    'result_unknown',
    `toolCallId ${callId}: no such call was made on this thread.`,
    {
      field: 'messages',
    },
  )

function refuseLate(settled: readonly AskRecord[]): void {
  const late = settled.find(({ answer }) => answer?.state === 'timeout')
  if (late) throw new RuntimeError('interrupt_expired', undefined, { field: 'resume' })
}

const isCall = (state: ThreadState, askId: string): boolean =>
  state.asks.get(askId)?.ask.kind === 'client_tool'

const beginning = (telling: Telling): Opening => ({ events: telling.begin(), mark: marks.begun })

/** The entries of a thread after one seq and up to another. */
async function entriesUpTo(thread: Thread, after: number, last: number): Promise<Known[]> {
  const entries: Known[] = []
  for (let seq = after; seq < last; ) {
    const page = await thread.entries(seq, Math.min(256, last - seq))
    if (page.length === 0) break
    entries.push(...page)
    seq = page.at(-1)!.seq
  }
  return entries
}

const emptyRun = ({ threadId, runId }: Listener): string[] => [
  event('RUN_STARTED', { threadId, runId }),
  event('RUN_FINISHED', { threadId, runId }),
]

/** RUN_STARTED, who decided what this client wanted to decide, and all there is. */
function joined(telling: Telling, settled: readonly AskRecord[]): EventText[] {
  const [started = '', ...rest] = telling.join()
  const decided = settled.map(({ ask, answer, answeredBy }) =>
    custom('handrail:decided', {
      interruptId: ask.askId,
      state: answer?.state,
      by: answeredBy?.id,
      ...(answer?.reason !== undefined && { reason: answer.reason }),
    }),
  )
  return [started, ...decided, ...rest]
}

/** A question shown as a card does not block: typing on passes over it. An interrupt does. */
function howBusy(state: ThreadState, { tools }: Listener, otherwise: 'reject' | 'queue') {
  const active = state.runs.get(state.active ?? '')
  if (active?.status !== 'waiting') return otherwise
  const [first] = openAsks(state, active, tools).interrupts
  if (!first) return 'cancel'
  const { askId, title } = first.ask
  const problem = `This thread waits for an answer first: ${title} (${askId}). Send it as resume.`
  throw new RuntimeError('thread_waiting', problem, { data: { asks: [askId] } })
}

const resultsOf = ({ results }: Reconciled) =>
  results.map(({ askId, message }) => ({
    askId,
    text: textOf(message),
    messageId: message.id,
  }))

/** What was said last in a run, to be said again. */
function saidLast(state: ThreadState, runId: string, { newId }: Runtime): Message[] {
  const all = (state.runs.get(runId)?.messageIds ?? []).map((id) => state.messages.get(id)!.message)
  const last = all.findLast(({ role }) => role === 'user')
  return last ? [{ ...last, id: newId('msg') }] : []
}
