import type { Clock } from '../lib/clock.ts'
import type { Person } from './audience.ts'
import { isRuntimeError } from './errors.ts'
import { type AskRow, type Bus, gone, inboxBell, type Store } from './store.ts'

export interface Following {
  store: Store
  bus: Bus
  clock: Clock
  tenant: string
  person: Person
  /** Milliseconds after which it is looked although nobody rang: a bus may be away. */
  every: number
}

export type InboxStep =
  /** What is open, in parts. The last has the place from which changes follow. */
  | { type: 'open'; rows: AskRow[]; first: boolean; place: string | undefined }
  /** What was raised or settled since, as it is now. Some of it may have been told before. */
  | { type: 'changed'; rows: AskRow[]; place: string }

const pageSize = 200
/** Who is further behind is told anew what is open. */
const mostChanges = 500
/** Milliseconds between two looks of one reader, however often it is rung for. */
const pause = 100

/**
 * An inbox as it is and then as it changes, on whichever server. Reads the store at the reader's pace and
 * holds a page for it: who does not read is not read for.
 */
export async function* followInbox(
  following: Following,
  after: string | undefined,
  signal: AbortSignal,
): AsyncGenerator<InboxStep, void, undefined> {
  const bell = bellOf(following, signal)
  try {
    yield* steps(following, after, bell, signal)
  } finally {
    bell.leave()
  }
}

async function* steps(
  { store, tenant, person, clock }: Following,
  after: string | undefined,
  bell: ReturnType<typeof bellOf>,
  signal: AbortSignal,
): AsyncGenerator<InboxStep, void, undefined> {
  const inbox = { tenant, decider: person }
  let place = after
  let told = new Set<string>()
  while (!signal.aborted) {
    try {
      if (place === undefined) {
        const { next } = await store.askChanges({ ...inbox, limit: 0 })
        let cursor: string | undefined
        for (let first = true; first || cursor !== undefined; first = false) {
          const query = { ...inbox, state: 'pending', limit: pageSize } as const
          const page = await store.asks({ ...query, ...(cursor !== undefined && { cursor }) })
          cursor = page.next
          const last = cursor === undefined
          yield { type: 'open', rows: page.rows, first, place: last ? next : undefined }
        }
        place = next
      }
      const { rows, next } = await store.askChanges({ ...inbox, after: place, limit: mostChanges })
      place = rows && next
      if (!rows) continue
      // A store may find again what it gave the last time.
      const fresh = rows.filter((row) => !told.has(nameOf(row)))
      told = new Set(rows.map(nameOf))
      if (fresh.length > 0) yield { type: 'changed', rows: fresh.sort(byTime), place: next }
    } catch (error) {
      if (!isRuntimeError(error, 'store_unavailable')) throw error
    }
    if (await bell.rung()) place = undefined
    await clock.sleep(pause, signal).catch(() => {})
  }
}

const nameOf = ({ threadId, askId, state }: AskRow) => JSON.stringify([threadId, askId, state])
const timeOf = ({ settledAt, raisedAt }: AskRow) => settledAt ?? raisedAt
const byTime = (a: AskRow, b: AskRow) => timeOf(a) - timeOf(b)

/** Waits for news of the tenant's inboxes, or a while. True when what was told may be gone. */
function bellOf({ bus, clock, every, tenant }: Following, signal: AbortSignal) {
  const name = inboxBell(tenant)
  let wake: (() => void) | undefined
  let isRung = false
  let isGone = false
  const leave = bus.listen((rung, seq) => {
    if (rung !== name) return
    isRung = true
    isGone ||= seq === gone
    wake?.()
  })
  signal.addEventListener('abort', () => wake?.(), { once: true })
  return {
    leave,
    async rung(): Promise<boolean> {
      if (!isRung && !signal.aborted) {
        const over = new AbortController()
        await new Promise<void>((resolve) => {
          wake = resolve
          clock.sleep(every, over.signal).then(resolve, () => {})
        })
        over.abort('over')
      }
      const anew = isGone
      isRung = false
      isGone = false
      return anew
    },
  }
}
