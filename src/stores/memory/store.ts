import { isWanted, liesIn, traysFor } from '../../core/audience.ts'
import type { Entry } from '../../core/entries.ts'
import { RuntimeError } from '../../core/errors.ts'
import { findingOf, hitIn, newestFirst, placeIn, wantedOf } from '../../core/said.ts'
import type {
  AskRow,
  Guard,
  Marks,
  NewEntry,
  Range,
  Residues,
  Store,
  ThreadRow,
} from '../../core/store.ts'
import type { Clock } from '../../lib/clock.ts'
import { newId } from '../../lib/ids.ts'
import { interleave } from '../../lib/interleave.ts'
import { pageOf } from './page.ts'

interface Thread {
  row: ThreadRow
  entries: Entry[]
  marks: (Marks | undefined)[]
  facts: Map<string, string>
  asks: Map<string, AskRow>
  timers: Map<string, number>
}

interface Lease {
  holder: string
  fence: number
  /** By the monotonic clock, so that a corrected wall clock takes nobody's lease. */
  until: number
}

/** Changes of asks that are remembered; readers that are further behind read the inbox anew. */
const mostChanges = 10_000

/** The readable specification of a store: everything is a Map, and every answer is a copy. */
export function memoryStore({ clock }: { clock: Clock }): Store & Residues {
  const threads = new Map<string, Thread>()
  const residues = new Map<string, string>()
  const leases = new Map<string, Lease>()
  /** The newest fence of each thread; it outlives the lease, so that a late driver may finish. */
  const fences = new Map<string, number>()
  let lastFence = 0
  const life = newId('life')
  /** The asks that changed last, and how many are forgotten. */
  const changedAsks: { threadId: string; askId: string }[] = []
  let forgotten = 0
  let closed = false

  const nameOf = (row: ThreadRow) => JSON.stringify([row.tenant, row.owner, row.clientId])
  const holderOf = (name: string) =>
    [...threads.values()].find((thread) => nameOf(thread.row) === name)?.row.threadId
  const live = (threadId: string) => (leases.get(threadId)?.until ?? 0) > clock.monotonic()

  function check(threadId: string, guard: Guard) {
    const fence = fences.get(threadId)
    if (guard.fence !== undefined && guard.fence !== fence)
      throw new RuntimeError('journal_conflict', 'Another driver has taken this thread.', {
        data: { fence: fence ?? 0 },
      })
    for (const expected of guard.expect ?? []) {
      const actual = threads.get(threadId)?.facts.get(expected.fact) ?? null
      const met = 'is' in expected ? actual === expected.is : actual !== expected.not
      if (!met)
        throw new RuntimeError('journal_conflict', `The fact ${expected.fact} has changed.`, {
          data: { fact: expected.fact, actual },
        })
    }
  }

  function apply(threadId: string, thread: Thread, marks: Marks) {
    for (const [fact, value] of Object.entries(marks.facts ?? {}))
      value === null ? thread.facts.delete(fact) : thread.facts.set(fact, value)
    for (const [key, at] of Object.entries(marks.timers ?? {}))
      at === null ? thread.timers.delete(key) : thread.timers.set(key, at)
    Object.assign(thread.row, marks.thread, { threadId })
    const { ask } = marks
    // The columns of an ask that was never raised have no row to go to.
    if (ask && (thread.asks.has(ask.askId) || ask.raisedAt !== undefined)) {
      changedAsks.push({ threadId, askId: ask.askId })
      if (changedAsks.length >= mostChanges * 2)
        forgotten += changedAsks.splice(0, mostChanges).length
      thread.asks.set(ask.askId, {
        ...(thread.asks.get(ask.askId) ?? {
          agent: thread.row.agent, // older marks do not say these
          clientId: thread.row.clientId,
          decidedBy: null,
        }),
        ...ask,
        threadId,
      } as AskRow)
    }
  }

  return {
    async append(threadId, given, guard) {
      if (closed) throw new RuntimeError('stopping')
      if (given.some((entry) => entry.threadId !== threadId))
        throw new RuntimeError('internal', 'An entry names another thread than it is written to.')
      const entries = structuredClone(given) as NewEntry[]
      const known = threads.get(threadId)
      const creation = creationOf(entries)
      if (!known && !creation) throw new RuntimeError('thread_not_found')
      if (known && entries[0]?.kind === 'thread.created') throw new RuntimeError('thread_exists')
      check(threadId, guard)

      const thread = known ?? emptyThread(creation as ThreadRow)
      let row = thread.row
      for (const { marks } of entries) row = { ...row, ...marks?.thread, threadId }
      const holder = holderOf(nameOf(row))
      if (holder !== undefined && holder !== threadId) throw new RuntimeError('thread_exists')

      const placed = entries.map(({ marks, ...entry }, n) => {
        if (marks) apply(threadId, thread, marks)
        return { ...entry, seq: thread.entries.length + n + 1 }
      })
      thread.entries.push(...placed)
      thread.marks.push(...entries.map(({ marks }) => marks))
      threads.set(threadId, thread)
      return structuredClone(placed)
    },

    async read(threadId, range) {
      const { found } = pageIn(threads.get(threadId)?.entries ?? [], range)
      return structuredClone(found)
    },

    async kept(threadId, range) {
      const { entries = [], marks = [] } = threads.get(threadId) ?? {}
      const { found, from } = pageIn(entries, range)
      return structuredClone(
        found.map((entry, n) => ({ entry, ...(marks[from + n] && { marks: marks[from + n] }) })),
      )
    },

    async locate({ tenant, owner, clientId }) {
      return holderOf(JSON.stringify([tenant, owner, clientId]))
    },

    async thread(threadId) {
      return structuredClone(threads.get(threadId)?.row)
    },

    async threads({ tenant, owner, archived, agent, active, limit, cursor }) {
      const rows = [...threads.values()]
        .map((thread) => thread.row)
        .filter((row) => row.tenant === tenant && row.owner === owner)
        .filter((row) => archived === undefined || row.archived === archived)
        .filter((row) => agent === undefined || row.agent === agent)
        .filter((row) => !active || row.status !== 'idle')
      return pageOf(rows, (row) => [-row.updatedAt, row.threadId], 'newest', limit, cursor)
    },

    async asks({ limit, cursor, ...query }) {
      const rows = [...threads.values()]
        .flatMap((thread) => [...thread.asks.values()])
        .filter((ask) => ask.tenant === query.tenant)
        .filter((ask) => !query.decider || liesIn(ask, traysFor(query.decider)))
        .filter((ask) => isWanted(ask, query))
      const { state } = query
      const keyOf = ({ askId, threadId, deadline, settledAt }: AskRow) =>
        state === 'settled'
          ? [-(settledAt ?? deadline), askId, threadId]
          : [deadline, askId, threadId]
      return pageOf(rows, keyOf, state === 'settled' ? 'latest' : 'soonest', limit, cursor)
    },

    async askChanges({ tenant, decider, after, limit }) {
      const next = `${life}.${forgotten + changedAsks.length}`
      if (after === undefined) return { rows: [], next }
      const [made, number] = after.split('.')
      const from = Number(number) - forgotten
      if (made !== life || !(from >= 0 && from <= changedAsks.length)) return { next }
      const rows = new Set<AskRow>()
      for (const { threadId, askId } of changedAsks.slice(from)) {
        const ask = threads.get(threadId)?.asks.get(askId)
        if (ask?.tenant === tenant && liesIn(ask, traysFor(decider))) rows.add(ask)
      }
      return rows.size > limit ? { next } : { rows: structuredClone([...rows]), next }
    },

    async find({ tenant, owner, words, except, limit, cursor }) {
      const after = placeIn(cursor)
      const wanted = wantedOf(words)
      if (!wanted) return { rows: [] }
      const hits = [...threads.values()]
        .filter(({ row }) => row.tenant === tenant && row.owner === owner)
        .filter(({ row }) => row.threadId !== except)
        .flatMap(({ row, entries }) =>
          entries.flatMap((entry) => hitIn(entry, row.clientId, wanted) ?? []),
        )
        .filter((hit) => !after || newestFirst(hit, after) > 0)
      return findingOf(hits.sort(newestFirst), limit)
    },

    async claim(threadId, holder, ttl, force = false) {
      if (closed) throw new RuntimeError('stopping')
      const theirs = live(threadId) && leases.get(threadId)?.holder !== holder
      if (theirs && !force) return undefined
      const fence = ++lastFence
      leases.set(threadId, { holder, fence, until: clock.monotonic() + ttl })
      fences.set(threadId, fence)
      return { fence }
    },

    async renew(holder, ttl) {
      const own = [...leases.values()].filter((lease) => lease.holder === holder)
      for (const lease of own) lease.until = clock.monotonic() + ttl
      return new Set(own.map((lease) => lease.fence))
    },

    async release(threadId, fence) {
      if (leases.get(threadId)?.fence === fence) leases.delete(threadId)
    },

    async work(limit) {
      const now = clock.now()
      const legs: string[] = []
      const due = new Set<string>()
      const later: number[] = []
      for (const [threadId, { row, timers }] of threads) {
        const lease = live(threadId) ? leases.get(threadId) : undefined
        if (row.leg !== null && !lease) legs.push(threadId)
        if (row.leg !== null && lease) later.push(now + Math.ceil(lease.until - clock.monotonic()))
        for (const at of timers.values()) at <= now ? due.add(threadId) : later.push(at)
      }
      const threadIds = interleave(limit, due, legs)
      return later.length > 0 ? { threadIds, nextAt: Math.min(...later) } : { threadIds }
    },

    async erase(threadId, guard, residue) {
      if (closed) throw new RuntimeError('stopping')
      if (!threads.has(threadId)) throw new RuntimeError('thread_not_found')
      check(threadId, guard)
      threads.delete(threadId)
      leases.delete(threadId)
      fences.delete(threadId)
      if (residue) residues.set(residue.id, residue.text)
    },

    async *residues() {
      for (const id of [...residues.keys()].sort()) yield { id, text: residues.get(id)! }
    },
    async keepResidue({ id, text }) {
      residues.set(id, text)
    },

    async probe() {},

    async close() {
      closed = true
    },
  }
}

/** Entries of a range, and the place of the first. */
function pageIn(entries: readonly Entry[], { after = 0, limit = 1000, bytes }: Range = {}) {
  const from = Math.max(0, after)
  const found = entries.slice(from, from + Math.max(0, limit))
  let size = 0
  const full = found.findIndex(({ body }) => {
    size += Buffer.byteLength(body)
    return bytes !== undefined && size >= bytes
  })
  return { from, found: full < 0 ? found : found.slice(0, full + 1) }
}

const columns = [
  ...(['tenant', 'owner', 'clientId', 'agent', 'title', 'createdAt', 'updatedAt'] as const),
  ...(['archived', 'status', 'leg'] as const),
]

/** The row that a first entry brings, if it is whole. */
function creationOf([first]: readonly NewEntry[]): Partial<ThreadRow> | undefined {
  const row = first?.kind === 'thread.created' ? first.marks?.thread : undefined
  return row && columns.every((column) => row[column] !== undefined) ? row : undefined
}

function emptyThread(row: ThreadRow): Thread {
  return {
    row: { ...row },
    entries: [],
    marks: [],
    facts: new Map(),
    asks: new Map(),
    timers: new Map(),
  }
}
