import { verifyResidue } from '../../src/core/audit-residue.ts'
import { type Verdict, Verifier, verifyThread } from '../../src/core/audit-verify.ts'
import type { Body, Known } from '../../src/core/entries.ts'
import { read } from '../../src/core/entries.ts'
import { fold } from '../../src/core/fold.ts'
import { validHistory } from '../../src/core/history.ts'
import { callsOf } from '../../src/core/messages.ts'
import { ended, type Run, type ThreadState } from '../../src/core/state.ts'
import type { Store, ThreadRow } from '../../src/core/store.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { findAudit } from '../../src/open-audit.ts'
import { fileReader } from '../../src/stores/file/reader.ts'
import { fileStore } from '../../src/stores/file/store.ts'
import { type OutsideRecord, type Received, receivedBy } from '../support/record.ts'
import { checkEffects } from './check-effects.ts'
import { checkReceived } from './check-received.ts'
import { executions } from './outside.ts'
import type { Told } from './person.ts'

export interface Thread {
  threadId: string
  row: ThreadRow
  entries: Known[]
  state: ThreadState
  /** What the audit says of it, where it was asked. */
  verdict?: Verdict
}

export type Complain = (problem: string) => void

/** Reads the journal of a stopped server, and the outside's record, and nothing else. */
export async function check(
  data: string,
  outside: string,
  told: Told,
  record?: OutsideRecord,
): Promise<string[]> {
  const chains = await checkChains(data)
  const store = await fileStore({ directory: data, clock: systemClock })
  try {
    const received = record && receivedBy(record)
    return [...chains, ...checkThreads(await readThreads(store), outside, told, received)]
  } finally {
    await store.close()
  }
}

/** I12: every thread is linked from its first entry on, and what was erased says so. */
async function checkChains(data: string): Promise<string[]> {
  const problems: string[] = []
  const keys = await findAudit({ audit: { on: true, secrets: [] }, database: undefined, data })
  const reader = await fileReader(data)
  for await (const threadId of reader.threadIds()) {
    const entries = reader.entries(threadId)
    const verdict = await verifyThread(entries, new Verifier(keys, threadId))
    if (verdict.seq > 0 && (verdict.verdict !== 'ok' || verdict.since !== 1))
      problems.push(`${threadId}: the chain is ${JSON.stringify(verdict)}`)
  }
  for await (const residue of reader.residues()) {
    const verdict = verifyResidue(keys, residue)
    if (verdict.verdict !== 'erased') problems.push(`a residue is ${JSON.stringify(verdict)}`)
  }
  return problems
}

/** The same, of threads that were read from any store. */
export function checkThreads(
  threads: Thread[],
  outside: string,
  told: Told,
  received?: readonly Received[],
): string[] {
  const problems: string[] = []
  for (const thread of threads) {
    const complain: Complain = (problem) => problems.push(`${thread.threadId}: ${problem}`)
    if (thread.verdict && thread.verdict.verdict !== 'ok')
      complain(`the chain is ${JSON.stringify(thread.verdict)}`)
    checkRow(thread, complain)
    checkOrder(thread, complain)
    checkTransitions(thread, complain)
    checkAsks(thread, complain)
    checkEnds(thread, complain)
    checkBudget(thread, complain)
    checkMessages(thread, complain)
    if (received) checkAnswers(thread, complain)
  }
  const seen = executions(outside).filter(({ n }) => {
    const chatId = told.numbers.get(Math.floor(n / 100))
    return chatId === undefined || !told.deleted.has(chatId)
  })
  checkEffects(threads, seen, (problem) => problems.push(problem))
  if (received) checkReceived(threads, received, told, (problem) => problems.push(problem))
  checkTold(threads, told, (problem) => problems.push(problem))
  return problems
}

export async function readThreads(store: Store): Promise<Thread[]> {
  const threads: Thread[] = []
  let cursor: string | undefined
  do {
    const page = await store.threads({
      ...{ tenant: 'default', owner: 'local', limit: 100 },
      ...(cursor !== undefined && { cursor }),
    })
    for (const row of page.rows) {
      const { threadId } = row
      const entries = (await store.read(threadId, { limit: 1e6 })).map(read)
      threads.push({ threadId, row, entries, state: fold(threadId, entries) })
    }
    cursor = page.next
  } while (cursor !== undefined)
  return threads
}

/** The index says what the journal says. */
function checkRow({ row, state }: Thread, complain: Complain): void {
  const { title, leg, updatedAt } = state
  if (row.title !== title || row.leg !== leg || row.updatedAt > updatedAt)
    complain(`the index says ${JSON.stringify(row)}`)
}

/** I5: without gap or repeat. I6: one driver after another. */
function checkOrder({ entries }: Thread, complain: Complain): void {
  const ids = new Set<string>()
  let fence = 0
  entries.forEach((entry, n) => {
    if (entry.seq !== n + 1) complain(`entry ${n + 1} has seq ${entry.seq}`)
    if (ids.has(entry.id)) complain(`entry id ${entry.id} is there twice`)
    ids.add(entry.id)
    if (entry.fence === 0) return
    if (entry.fence < fence) complain(`seq ${entry.seq}: fence ${entry.fence} after ${fence}`)
    fence = entry.fence
  })
}

/** A transition is there with all that belongs together, or not at all. */
function checkTransitions({ entries, state }: Thread, complain: Complain): void {
  const transitions = new Map<string, Known[]>()
  let last = ''
  for (const entry of entries) {
    const known = transitions.get(entry.tx)
    if (known && last !== entry.tx) complain(`seq ${entry.seq}: ${entry.tx} is torn apart`)
    transitions.set(entry.tx, [...(known ?? []), entry])
    last = entry.tx
  }
  for (const [tx, group] of transitions) {
    const has = (kind: Known['kind'], fits: (entry: Known) => boolean = () => true) =>
      group.some((one) => one.kind === kind && fits(one))
    for (const entry of group) {
      const sameRun = (other: Known) => other.runId === entry.runId
      const need = (kind: Known['kind'], fits = sameRun) => {
        if (!has(kind, fits)) complain(`${tx}: ${entry.kind} without ${kind}`)
      }
      if (entry.kind === 'thread.created') need('governor.set', () => true)
      if (entry.kind === 'run.queued' && entry.body.why === 'start') need('message.added')
      if (entry.kind === 'run.started' && entry.body.leg === 1) need('thread.head')
      if (entry.kind === 'effect.done' && entry.body.effect === 'tool') {
        // The outcome of a call whose leg has ended or lost its fence is recorded alone.
        if (entry.actor.id !== 'late_result') need('message.added')
      }
      if (entry.kind === 'effect.done' && entry.body.effect === 'model') need('message.added')
    }
  }
  if (state.active === null && state.line.length > 0)
    complain(`nothing is active, and ${state.line} wait in line`)
}

/** I2: one decision, and the run goes on from it. */
function checkAsks({ entries, state }: Thread, complain: Complain): void {
  const answered = new Map<string, number>()
  for (const entry of entries) {
    if (entry.kind !== 'ask.answered') continue
    const { askId } = entry.body
    answered.set(askId, (answered.get(askId) ?? 0) + 1)
  }
  for (const [askId, times] of answered) {
    if (times > 1) complain(`${askId} was answered ${times} times`)
    if (!state.asks.has(askId)) complain(`${askId} was answered and never raised`)
  }
  for (const { ask, answer, runId } of state.asks.values()) {
    const run = state.runs.get(runId)
    if (!answer && run && ended(run)) complain(`${ask.askId} is open, its run is ${run.status}`)
    if (!answer && run?.status !== 'waiting') complain(`${ask.askId} is open, nothing waits for it`)
  }
  for (const run of state.runs.values()) {
    const open = run.askIds.some((id) => !state.asks.get(id)?.answer)
    if (run.status === 'waiting' && !open) complain(`${run.runId} waits for nothing`)
  }
}

const endings = ['run.completed', 'run.failed', 'run.cancelled']
const settlements = ['effect.done', 'effect.failed', 'effect.unknown']

/** I7: what has ended says nothing more. */
function checkEnds({ entries, state }: Thread, complain: Complain): void {
  const over = new Map<string, Known['kind']>()
  const expected = [
    ...['told to fail', 'The server stopped'],
    ...['Whether the remote agent did it is not known', 'The remote agent was not done after'],
  ]
  for (const entry of entries) {
    const { runId, kind, seq } = entry
    if (runId === undefined) continue
    const end = over.get(runId)
    const retried = end === 'run.failed' && kind === 'run.queued' && entry.body.why === 'retry'
    if (retried) over.delete(runId)
    else if (end && !settlements.includes(kind)) complain(`seq ${seq}: ${kind} after ${end}`)
    if (endings.includes(kind)) over.set(runId, kind)
    if (kind === 'run.failed' && !expected.some((why) => entry.body.error.message.startsWith(why)))
      complain(`${runId} failed: ${JSON.stringify(entry.body.error)}`)
  }
  for (const run of state.runs.values()) {
    const visible = ended(run) || run.status === 'waiting'
    if (!visible) complain(`${run.runId} is ${run.status}`)
  }
}

/** I9: a call is covered when it is reserved; to sum up, a run may be granted one beyond its limit. */
function checkBudget({ entries }: Thread, complain: Complain): void {
  let [on, limit, used] = [false, 0, 0]
  let last: string | undefined
  for (const entry of entries) {
    if (entry.kind === 'governor.set') {
      const { isHitlEnabled, actionLimit, resetCounter } = entry.body
      on = isHitlEnabled ?? on
      limit = actionLimit ?? limit
      if (resetCounter) used = 0
      last = entry.body.last
    }
    if (entry.kind !== 'effect.intended' || entry.body.effect === 'tool') continue
    const granted = entry.body.last && last === entry.runId
    if (granted) last = undefined
    else if (on && used >= limit) complain(`seq ${entry.seq}: call ${used + 1} of ${limit}`)
    used++
  }
}

/** I8, and nothing is said twice. */
function checkMessages({ entries, state }: Thread, complain: Complain): void {
  const texts = new Set<string>()
  const retracted = new Set<string>()
  for (const entry of entries) {
    if (entry.kind === 'message.retracted') for (const id of entry.body.ids) retracted.add(id)
    if (entry.kind !== 'message.added') continue
    const { id, role, parts } = (entry.body as Body<'message.added'>).message
    if (retracted.has(id)) complain(`${id} was retracted and added`)
    if (role !== 'user') continue
    const text = JSON.stringify(parts)
    if (texts.has(text)) complain(`${text} was accepted twice`)
    texts.add(text)
  }
  for (const run of state.runs.values())
    if (run.status === 'completed') checkRun(run, state, complain)
}

/** A completed run needs no repair to be a provider's history. */
function checkRun(run: Run, state: ThreadState, complain: Complain): void {
  const said = run.messageIds.map((id) => state.messages.get(id)!.message)
  const valid = validHistory(said)
  const ids = (messages: typeof said) => messages.map(({ id }) => id).sort()
  if (String(ids(valid)) !== String(ids(said))) complain(`${run.runId} completed with a hole`)
  if (said.some(({ partial }) => partial)) complain(`${run.runId} completed with half a message`)
  if (said.at(-1)?.role !== 'assistant') complain(`${run.runId} completed without an answer`)
}

/** Nothing is answered twice: the agents whose model calls are recorded outside give one answer to each message. */
function checkAnswers({ state }: Thread, complain: Complain): void {
  for (const run of state.runs.values()) {
    if (run.status !== 'completed') continue
    const said = run.messageIds.map((id) => state.messages.get(id)!.message)
    const answers = said.filter((one) => one.role === 'assistant' && callsOf(one).length === 0)
    if (answers.length > 1) complain(`${run.runId} completed with ${answers.length} answers`)
  }
}

/** I1: what was accepted is there; I2: what was said about an ask is so. */
export function checkTold(threads: Thread[], told: Told, complain: Complain): void {
  const byId = new Map(threads.map((thread) => [thread.threadId, thread]))
  for (const [runId, chatId] of told.accepted) {
    if (told.deleted.has(chatId)) continue
    const run = byId.get(chatId)?.state.runs.get(runId)
    if (!run) complain(`${chatId}: ${runId} was accepted and is gone`)
  }
  const asks = new Map(threads.flatMap(({ state }) => [...state.asks]))
  for (const [askId, { state, outcome, chatId }] of told.answers) {
    if (told.deleted.has(chatId)) continue
    const answer = asks.get(askId)?.answer
    if (!answer) complain(`${askId}: said ${state}, and the journal has no answer`)
    else if (answer.state !== state) complain(`${askId}: said ${state}, is ${answer.state}`)
    else if (answer.outcome !== outcome) complain(`${askId}: said ${outcome}, is ${answer.outcome}`)
  }
  for (const chatId of told.deleted) if (byId.has(chatId)) complain(`${chatId} is still there`)
}
