import type { HttpAgent, Message } from '@ag-ui/client'
import { ApiError, toApiError } from '../api.ts'
import { parted, slim } from './messages.ts'
import { type LinkState, told } from './state.ts'
import type { Store } from './store.ts'

/** How a stream of CopilotKit's agent ended: `failure` without `ended` is one that was cut or refused. */
export interface Outcome {
  ended: boolean
  failure: ApiError | undefined
}

export interface StreamCallbacks {
  /** The server has the new message. */
  taken(): void
  /** A stream that follows a thread without a new message has sent its first list of messages. */
  joined(): void
}

/** What CopilotKit's agent reads, one stream at a time, and what of it is kept in the link's state. */
export class Streams {
  readonly #agent: HttpAgent
  readonly #store: Store<LinkState>
  #outcome: Outcome = { ended: false, failure: undefined }
  #signal = AbortSignal.abort()
  /** The stream before this one was not read to its end. */
  #left = false
  /** Messages that the server may not have: nothing was heard of it since they were sent. */
  readonly #fresh = new Set<string>()
  /** What this stream was begun with is not known to have arrived. */
  unheard = false

  /** The current stream joins a thread, and its first snapshot has not come. */
  #joins = false
  #reading = false

  readonly #on: StreamCallbacks

  constructor(agent: HttpAgent, store: Store<LinkState>, on: StreamCallbacks) {
    this.#agent = agent
    this.#store = store
    this.#on = on
  }

  /** Whether a stream is being read whose run has not ended. */
  get reading(): boolean {
    return this.#reading && !this.#outcome.ended
  }

  open(): () => void {
    const store = this.#store
    this.#agent.fetch = (url, init) => this.#fetch(url, init)
    const { unsubscribe } = this.#agent.subscribe({
      // The server's list holds as it is; CopilotKit would merge it with what it has.
      onMessagesSnapshotEvent: ({ event }) => {
        const { earlier, held } = parted(event.messages as Message[])
        store.set({ earlier, phase: 'live' }) // from here on all of it is told as it happens
        if (this.#joins) this.#on.joined()
        this.#joins = false
        return { messages: held, stopPropagation: true }
      },
      onTextMessageStartEvent: () => store.set({ retry: undefined }),
      onCustomEvent: ({ event }) => store.set(told(store.get(), event.name, event.value)),
      onRunStartedEvent: () => {
        if (this.#fresh.size > 0) this.#on.taken()
        this.unheard = false
        this.#fresh.clear()
      },
      onRunFinishedEvent: () => this.#end(),
      onRunErrorEvent: ({ event }) =>
        this.#end(new ApiError(200, event.code ?? 'run_error', event.message)),
      onRunFailed: ({ error }) => {
        const { status, payload } = error as { status?: number; payload?: unknown }
        const cut = new ApiError(0, 'cut', 'The connection was cut.')
        this.#outcome.failure = status === undefined ? cut : toApiError(status, payload)
      },
    })
    return unsubscribe
  }

  /** Reads a stream to its end, or until the signal fires. `fresh` is the message that is new. */
  async read(begin: () => Promise<unknown>, signal: AbortSignal, fresh?: string): Promise<Outcome> {
    await this.#agent.detachActiveRun()
    this.#left = !this.#outcome.ended
    this.#outcome = { ended: false, failure: undefined }
    this.#signal = signal
    this.unheard = fresh !== undefined
    this.#joins = fresh === undefined
    this.#reading = true
    if (fresh !== undefined) this.#fresh.add(fresh)
    const leave = () => void this.#agent.detachActiveRun()
    signal.addEventListener('abort', leave)
    try {
      await begin()
    } finally {
      this.#reading = false
      signal.removeEventListener('abort', leave)
    }
    return this.#outcome
  }

  #end(failure?: ApiError): void {
    this.#outcome = { ended: true, failure }
    this.#store.set({ retry: undefined })
  }

  #fetch(url: RequestInfo | URL, init: RequestInit = {}): Promise<Response> {
    if (typeof init.body !== 'string') return fetch(url, init) // it asks what the runtime offers
    const body = slim(init.body, this.#store.get().earlier, {
      fresh: this.#fresh,
      left: this.#left,
    })
    // Leaving a stream must close it: a browser has six connections for a server, and no more.
    return fetch(url, { ...init, body, signal: this.#signal })
  }
}
