import { ApiError, getApproval, inboxPath, listOpen, listSettled } from './api.ts'
import { frames } from './events.ts'
import { Store } from './link/store.ts'
import { aborted, pause, whileHidden } from './link/waiting.ts'
import type { Approval } from './shapes.ts'

export interface InboxState {
  /** Everything that may be decided, the soonest deadline first. Undefined until it is known. */
  open: readonly Approval[] | undefined
  /** What was settled while the page was open, by id: how it ended. */
  settled: ReadonlyMap<string, Approval>
  live: boolean
}

interface Snapshot {
  approvals: Approval[]
  first: boolean
  last: boolean
}

/** The order of the inbox. It does not depend on the state, so a row keeps its place when it is decided. */
export const soonestFirst = (a: Approval, b: Approval): number =>
  a.deadline.localeCompare(b.deadline) || a.id.localeCompare(b.id)

const kept = 200 // of what was settled
const lookEvery = 3_000
/** Requests that one look reads one by one, because they are not among those settled last. */
const mostLookedUp = 5

/**
 * Only one tab holds the stream, for all of them together have six connections and each needs one for its
 * chat; the others look now and then. Where tabs cannot know of each other, each has its own.
 */
const asOne = async (work: (first: boolean) => Promise<void>): Promise<void> => {
  if (!navigator.locks) return await work(true)
  const free = { ifAvailable: true }
  await navigator.locks.request('handrail.inbox', free, (lock) => work(lock !== null))
}

/** A tab that nobody looks at lets its connection go: a browser has six of them for a server. */
const sleepAfter = 30_000

/** What waits for a decision, across chats, as it changes. Finds its way back by itself. */
export class Inbox extends Store<InboxState> {
  #turn = new AbortController()
  #closed = false
  #asleep = false
  #after: string | undefined
  #open = new Map<string, Approval>()
  /** Requests of a snapshot whose last part has not come yet. */
  #listed = new Map<string, Approval>()
  /** Requests in `#open` that the last snapshot did not have. */
  #unlisted = new Set<string>()

  constructor() {
    super({ open: undefined, settled: new Map(), live: false })
  }

  /** Follows until the returned function is called. */
  follow(): () => void {
    const awake = whileHidden(sleepAfter, (asleep) => {
      this.#asleep = asleep
      this.#turn.abort()
    })
    void this.#read()
    return () => {
      this.#closed = true
      this.#turn.abort()
      awake()
    }
  }

  async #read(): Promise<void> {
    let tries = 0
    while (!this.#closed) {
      this.#turn = new AbortController()
      const { signal } = this.#turn
      if (this.#asleep) {
        await aborted(signal)
        continue
      }
      try {
        await asOne((first) => (first ? this.#stream(signal) : this.#look(signal)))
        tries = 0
      } catch {
        // It is read again: what was missed comes after the last id.
        this.set({ live: false })
        if (!this.#closed && !signal.aborted) await pause(++tries, signal)
      }
    }
  }

  async #stream(signal: AbortSignal): Promise<void> {
    await this.#findEnds(signal)
    for await (const { id, event, data } of frames(inboxPath(this.#after), signal)) {
      this.#take(event, JSON.parse(data))
      if (id !== undefined) this.#after = id
      await this.#findEnds(signal)
    }
    if (!signal.aborted) throw new Error('The stream has ended.')
  }

  /** What is open by now, and how the rest ended. */
  async #look(signal: AbortSignal): Promise<void> {
    const { approvals } = await listOpen(signal)
    this.#after = undefined
    this.#take('snapshot', { approvals, first: true, last: true })
    await this.#findEnds(signal, mostLookedUp)
    await Promise.race([aborted(signal), new Promise((done) => setTimeout(done, lookEvery))])
  }

  /** Finds out how requests ended that the server does not list as open any more. Looks up so many of them. */
  async #findEnds(signal: AbortSignal, most = Number.POSITIVE_INFINITY): Promise<void> {
    if (this.#unlisted.size === 0) return
    const { approvals } = await listSettled(undefined, signal)
    for (const one of approvals) if (this.#unlisted.has(one.id)) this.#settle(one)
    for (const id of [...this.#unlisted].slice(0, most)) await this.#lookUp(id, signal)
    this.#show()
  }

  /** What cannot be read any more went with its chat. */
  async #lookUp(id: string, signal: AbortSignal): Promise<void> {
    const one = await getApproval(id, signal).catch((error: unknown) => {
      if (error instanceof ApiError && error.status === 404) return undefined
      throw error
    })
    if (one && one.state !== 'pending') return this.#settle(one)
    const row = this.#open.get(id)
    this.#open.delete(id)
    this.#unlisted.delete(id)
    if (one && row) this.#open.set(id, row) // at the end: the others are looked up first the next time
  }

  #take(event: string, data: unknown): void {
    if (event === 'snapshot') {
      const { approvals, first, last } = data as Snapshot
      if (first) this.#listed = new Map()
      for (const one of approvals) this.#listed.set(one.id, one)
      if (!last) return
      // A row stays until it is known how its request ended.
      const unlisted = [...this.#open].filter(([id]) => !this.#listed.has(id))
      this.#open = new Map([...this.#listed, ...unlisted])
      this.#unlisted = new Set(unlisted.map(([id]) => id))
    } else {
      const one = data as Approval
      if (one.state === 'pending') this.#open.set(one.id, one)
      else this.#settle(one)
    }
    this.#show()
  }

  #show(): void {
    const open = [...this.#open.values()].sort(soonestFirst)
    this.set({ open, live: true })
  }

  #settle(one: Approval): void {
    this.#open.delete(one.id)
    this.#unlisted.delete(one.id)
    const settled = [...this.get().settled, [one.id, one] as const].slice(-kept)
    this.set({ settled: new Map(settled) })
  }
}
