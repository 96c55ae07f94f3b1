import { getApproval, inboxPath, listOpen } from './api.ts'
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
    for await (const { id, event, data } of frames(inboxPath(this.#after), signal)) {
      this.#take(event, JSON.parse(data))
      if (id !== undefined) this.#after = id
    }
    if (!signal.aborted) throw new Error('The stream has ended.')
  }

  /** What is open by now, and how the rest ended. */
  async #look(signal: AbortSignal): Promise<void> {
    const { approvals } = await listOpen(signal)
    const left = new Set(approvals.map(({ id }) => id))
    for (const id of [...this.#open.keys()].filter((one) => !left.has(one)).slice(0, 5))
      await this.#lookUp(id, signal)
    this.#after = undefined
    this.#take('snapshot', { approvals, first: true, last: true })
    await Promise.race([aborted(signal), new Promise((done) => setTimeout(done, lookEvery))])
  }

  /** What cannot be read any more went with its chat. */
  async #lookUp(id: string, signal: AbortSignal): Promise<void> {
    const one = await getApproval(id, signal).catch(() => undefined)
    if (one && one.state !== 'pending') this.#settle(one)
  }

  #take(event: string, data: unknown): void {
    if (event === 'snapshot') {
      const { approvals, first, last } = data as Snapshot
      if (first) this.#open = new Map()
      for (const one of approvals) this.#open.set(one.id, one)
      if (!last) return
    } else {
      const one = data as Approval
      if (one.state === 'pending') this.#open.set(one.id, one)
      else this.#settle(one)
    }
    const open = [...this.#open.values()].sort(soonestFirst)
    this.set({ open, live: true })
  }

  #settle(one: Approval): void {
    this.#open.delete(one.id)
    const settled = [...this.get().settled, [one.id, one] as const].slice(-kept)
    this.set({ settled: new Map(settled) })
  }
}
