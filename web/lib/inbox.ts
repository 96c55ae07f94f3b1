import { inboxPath } from './api.ts'
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

const kept = 200 // of what was settled

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
        for await (const { id, event, data } of frames(inboxPath(this.#after), signal)) {
          tries = 0
          this.#take(event, JSON.parse(data))
          if (id !== undefined) this.#after = id
        }
      } catch {
        // It is read again: what was missed comes after the last id.
      }
      this.set({ live: false })
      if (!this.#closed && !signal.aborted) await pause(++tries, signal)
    }
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
    const open = [...this.#open.values()].sort((a, b) => a.deadline.localeCompare(b.deadline))
    this.set({ open, live: true })
  }

  #settle(one: Approval): void {
    this.#open.delete(one.id)
    const settled = [...this.get().settled, [one.id, one] as const].slice(-kept)
    this.set({ settled: new Map(settled) })
  }
}
