import type { AbstractAgent, HttpAgent, Message } from '@ag-ui/client'
import type { CopilotKitCoreReact } from '@copilotkit/react-core/v2/context'
import {
  ApiError,
  type BudgetChange,
  createChat,
  getOutline,
  retryRun,
  setBudget,
  stopThread,
  watchPath,
} from '../api.ts'
import { events } from '../events.ts'
import type { Standing } from '../shapes.ts'
import { parted } from './messages.ts'
import { heard, lost, notStopped } from './notes.ts'
import { seated } from './seats.ts'
import { initial, isActive, isRunning, type LinkState, type Saying } from './state.ts'
import { Store } from './store.ts'
import { Streams } from './stream.ts'
import { aborted, pause, rest, whileHidden } from './waiting.ts'

/** A browser has six connections for a server: tabs that nobody looks at must not hold one each. */
const sleepAfter = 2_000
/** Milliseconds between two looks: of a tab without a seat, and of one that nobody looks at. */
const lookEvery = 3_000
const peekEvery = 5_000
/** Milliseconds after which a joined stream that has not ended is taken to be that of a running turn. */
const joinGrace = 100

type Job = { say: Saying } | { again: string } | { retry: string }

/**
 * Ties the page to a thread: shows it as it is, says what is said, and finds the way back by itself
 * after whatever happens to the connection. One thing at a time: something to say, or the stream of
 * what runs, or the wait for the next change. CopilotKit's streams end with the run.
 */
export class Link extends Store<LinkState> {
  readonly #core: CopilotKitCoreReact
  readonly #agent: HttpAgent
  readonly #agentId: string
  readonly #threadId: string
  readonly #streams: Streams
  readonly #jobs: Job[] = []
  /** Ends what is being read, so that the next thing is done. */
  #turn = new AbortController()
  #closed = false
  /** Failed attempts since the server was last heard. */
  #tries = 0
  /** A stop is on its way: what is read meanwhile does not know of it. */
  #stops = false
  /** Nobody looks at this tab: it lets its connection go. */
  #asleep = false
  /** What was said when the connection broke: it may not have arrived. */
  #unsure: { id: string; saying: Saying } | undefined

  constructor(core: CopilotKitCoreReact, agent: AbstractAgent, agentId: string, threadId: string) {
    super(initial)
    this.#core = core
    this.#agent = agent as HttpAgent
    this.#agentId = agentId
    this.#threadId = threadId
    this.#streams = new Streams(this.#agent, this, {
      taken: () => void this.#peek(),
      joined: () => void this.#joined(),
    })
  }

  /** Follows the thread until the returned function is called. */
  open(): () => void {
    this.#agent.threadId = this.#threadId
    const close = this.#streams.open()
    const awake = whileHidden(sleepAfter, (asleep) => {
      this.#asleep = asleep
      if (!this.#streams.unheard) this.#turn.abort()
    })
    void this.#follow()
    return () => {
      this.#closed = true
      this.#turn.abort()
      awake()
      close()
    }
  }

  say(saying: Saying): void {
    this.#do({ say: saying })
  }

  /** Asks again what this message asked, on a new branch. */
  again(messageId: string): void {
    this.#do({ again: messageId })
  }

  /** Runs a turn that failed once more, from where it failed. */
  retry(runId: string): void {
    this.#do({ retry: runId })
    this.set({ saying: true }) // at once: until it is known to run, nothing else is to be sent
  }

  /** The budget of a thread that has not begun: the first message brings it along. */
  plan(budget: BudgetChange): void {
    this.set({ planned: budget })
  }

  async stop(): Promise<void> {
    this.set({ stopping: true, problem: undefined })
    this.#stops = true
    // Other tabs may hold all connections but this one's own, which is let go for it and taken up after it.
    if (!this.#streams.unheard) this.#turn.abort()
    try {
      const { stopped } = await stopThread(this.#agentId, this.#threadId)
      this.#stops = false
      if (stopped) return
      this.set({ stopping: false }) // it has ended in the meantime
      if (!this.get().saying) this.refresh()
    } catch (problem) {
      this.#stops = false
      this.set({ stopping: false })
      this.#tell(problem instanceof ApiError ? notStopped(problem) : problem)
    }
  }

  /** Looks at the thread again: it was changed by another way. */
  refresh(): void {
    this.#turn.abort()
  }

  dismiss(): void {
    this.set({ problem: undefined })
  }

  #do(job: Job): void {
    this.#jobs.push(job)
    this.set({ problem: undefined })
    this.#turn.abort()
  }

  async #follow(): Promise<void> {
    let upToDate = false
    while (!this.#closed) {
      this.#turn = new AbortController()
      const job = this.#jobs.shift()
      if (job) upToDate = await this.#carryOut(job)
      else if (this.#asleep) upToDate = await this.#sleep()
      else if (upToDate) upToDate = await this.#watch()
      else upToDate = await this.#catchUp()
      if (this.#tries > 0 && this.#jobs.length === 0) await pause(this.#tries, this.#turn.signal)
    }
  }

  /** Gives whether the page shows all there is. */
  async #carryOut(job: Job): Promise<boolean> {
    if ('retry' in job) return await this.#retry(job.retry)
    const agent = this.#agent
    const before = { earlier: this.get().earlier, held: agent.messages }
    const handrail: Record<string, string> = {}
    let forwarded = {}
    let fresh: string | undefined
    if ('say' in job) {
      const { content, branchFrom, whenBusy } = job.say
      forwarded = job.say.forwarded ?? {}
      fresh = crypto.randomUUID()
      if (branchFrom !== undefined) this.#cut(branchFrom, 0)
      // A new list, not a longer one: components know lists by their identity.
      agent.setMessages([...agent.messages, { id: fresh, role: 'user', content } as Message])
      if (branchFrom !== undefined) handrail.branchFrom = branchFrom
      if (whenBusy !== undefined) handrail.whenBusy = whenBusy
    } else this.#cut(job.again, 1)
    this.set({ saying: true, said: this.get().said + 1, outputs: {}, calls: {} })
    agent.pendingInterrupts = [] // the server knows which are open, and says so
    const refused = await this.#begun()
    if (refused) {
      agent.setMessages(before.held)
      const taken = 'say' in job ? { saying: job.say } : {}
      this.set({ saying: false, problem: { error: refused, ...taken } })
      return false
    }
    const begin = () => this.#core.runAgent({ agent, forwardedProps: { ...forwarded, handrail } })
    const { ended, failure } = await this.#streams.read(begin, this.#turn.signal, fresh)
    const cut = failure ? failure.code === 'cut' : !ended && !this.#turn.signal.aborted
    const unheard = cut || (!failure && this.#streams.unheard)
    if (unheard && 'say' in job && fresh) this.#unsure = { id: fresh, saying: job.say }
    const read = await this.#read()
    this.set({ saying: false })
    const kept = this.get().outline?.turns.at(-1)?.status === 'failed' // the thread tells it itself
    if (!failure || cut || (ended && kept)) return ended && read
    agent.setMessages(before.held)
    const taken = 'say' in job ? { saying: job.say } : {}
    this.set({ earlier: before.earlier, problem: { error: failure, ...taken } })
    return read
  }

  async #retry(runId: string): Promise<boolean> {
    try {
      await retryRun(this.#threadId, runId)
      await this.#read()
    } catch (problem) {
      this.#tell(problem)
    }
    this.set({ saying: false })
    return false // what runs is followed
  }

  /** Begins the thread with the budget that was planned for it, if one was; gives why it could not. */
  async #begun(): Promise<ApiError | undefined> {
    const { planned } = this.get()
    if (!planned) return undefined
    try {
      await createChat(this.#threadId, this.#agentId)
      await setBudget(this.#threadId, planned)
      this.set({ planned: undefined })
      return undefined
    } catch (problem) {
      return problem instanceof ApiError ? problem : new ApiError(0, 'unknown', String(problem))
    }
  }

  /** Leaves the list as it was before a message; `more` messages from there on stay. */
  #cut(messageId: string, more: number): void {
    const all = [...this.get().earlier, ...this.#agent.messages]
    const at = all.findIndex(({ id }) => id === messageId)
    if (at < 0) return
    const { earlier, held } = parted(all.slice(0, at + more))
    this.set({ earlier })
    this.#agent.setMessages(held)
  }

  /** The thread as it is, and what runs on it until that has ended. */
  async #catchUp(): Promise<boolean> {
    const found = await this.#read()
    if (this.get().phase === 'nowhere') await aborted(this.#turn.signal)
    if (!found) return false
    const agent = this.#agent
    if (this.get().outline === undefined) return this.#settle()
    agent.pendingInterrupts = []
    const begin = () => this.#core.connectAgent({ agent })
    const { ended, failure } = await this.#streams.read(begin, this.#turn.signal)
    if (!(await this.#read())) return false
    const empty = !failure && this.get().outline?.turns.length === 0
    if (ended || empty) return this.#settle()
    return this.#turn.signal.aborted ? false : this.#lost(failure)
  }

  /** What the server shows is all there is: what was said last is in it, or has to be said again. */
  #settle(): true {
    this.#tries = 0
    const unsure = this.#unsure
    this.#unsure = undefined
    const all = this.get().outline ? [...this.get().earlier, ...this.#agent.messages] : []
    if (unsure && !all.some(({ id }) => id === unsure.id)) {
      this.#agent.setMessages(this.#agent.messages.filter(({ id }) => id !== unsure.id))
      this.set({ problem: { error: lost(), saying: unsure.saying } })
    }
    return true
  }

  /** What runs is looked at now and then: the title of the tab tells when somebody is needed. */
  async #sleep(): Promise<false> {
    const { signal } = this.#turn
    while (!signal.aborted && isRunning(this.get())) {
      await rest(peekEvery, signal)
      if (!signal.aborted) await this.#read()
    }
    await aborted(signal)
    return false
  }

  /** Waits on a quiet thread. Gives false when there is something to catch up with. */
  async #watch(): Promise<boolean> {
    const { outline } = this.get()
    if (outline) return await seated((seat) => this.#wait(outline, seat))
    if (this.get().phase !== 'gone') this.set({ phase: 'live' })
    await aborted(this.#turn.signal) // the first message makes the thread
    return false
  }

  /** Keeps its connection only with a seat; without one it looks, and again a little later. */
  async #wait(outline: Standing, seat: boolean): Promise<boolean> {
    const { signal } = this.#turn
    try {
      for await (const data of events(watchPath(this.#threadId), signal)) {
        this.#tries = 0
        if ((JSON.parse(data) as Standing).seq !== outline.seq) {
          this.set({ phase: 'catching-up' })
          return false
        }
        this.set({ phase: 'live' })
        if (!seat) break
      }
      if (seat) return this.#lost()
      await rest(lookEvery, signal)
      return !signal.aborted
    } catch (problem) {
      if (!signal.aborted) this.#lost(problem)
    }
    return false
  }

  /**
   * Reads the outline while no stream is read. It is newer than every event of earlier streams, so it replaces the
   * states of calls that those have sent.
   */
  async #read(): Promise<boolean> {
    try {
      const outline = (await getOutline(this.#threadId)) ?? undefined
      const { phase, stopping, saying, problem, outline: had } = this.get()
      const back = phase === 'reconnecting' ? 'catching-up' : phase
      const gone = outline === undefined && (had !== undefined || phase === 'gone')
      const stops = stopping && (this.#stops || outline?.status === 'cancelling')
      this.set({
        outline,
        calls: {},
        governor: outline?.governor,
        phase: gone ? 'gone' : back,
        stopping: stops,
        problem: heard(problem, !saying && !isActive(outline?.status)),
      })
      if (gone) this.#clear()
      return true
    } catch (problem) {
      if (!(problem instanceof ApiError && problem.status === 400)) return this.#lost(problem)
      this.set({ phase: 'nowhere' }) // no chat can be called this
      return false
    }
  }

  /**
   * Reads the outline again after a stream was joined. Entries that were written between the first read and the first
   * event of the stream are in neither: without this, a call that came in doubt then would be shown as running.
   */
  async #joined(): Promise<void> {
    await rest(joinGrace, this.#turn.signal)
    if (this.#streams.reading) await this.#peek()
  }

  /** Reads the outline during a stream, e.g. for the name of a new thread. Ignores errors: it is read again at the end. */
  async #peek(): Promise<void> {
    const outline = await getOutline(this.#threadId).catch(() => null)
    const { saying, outline: known } = this.get()
    if (!outline || outline.seq < (known?.seq ?? 0)) return
    if (saying || this.#streams.reading) this.set({ outline, governor: outline.governor })
  }

  #clear(): void {
    this.set({ earlier: [] })
    this.#agent.setMessages([])
  }

  #lost(problem?: unknown): false {
    this.#tries++
    if (!this.#closed) this.set({ phase: 'reconnecting', retry: undefined })
    if (problem instanceof ApiError && problem.status === 401) this.#tell(problem)
    return false
  }

  #tell(problem: unknown): void {
    if (problem instanceof ApiError) this.set({ problem: { error: problem } })
  }
}
