import type { Random } from '../../crash/random.ts'
import { shape } from '../judge.ts'
import { type Client, coreClient, httpClient, lines, toolMessage, userMessage } from '../support.ts'
import type { Host } from './host.ts'
import { type Call, type Cut, Line } from './line.ts'
import { type Life, type Turn, withoutNumbers, wordsOf } from './lives.ts'

const parameters = { type: 'object', properties: { what: { type: 'string' } } }
const paint = { name: 'paint', description: 'Paints the page', parameters }
const painted = { applied: 'teal' }

/** What a visitor may do to its own connection; undefined: it behaves. */
export interface Trouble {
  random: Random
  /** The share of threads, and of reloaded pages, that are CopilotKit's. */
  cores: number
}

type Ask = Client['agent']['pendingInterrupts'][number]
type Held = { id: string; role: string; toolCallId?: string; toolCalls?: { id: string }[] }

/** Somebody who lives one life on one thread, whatever happens to the connection or the server. */
export class Visitor {
  readonly problems: string[] = []
  /** What it did and what came of it, for who has to find out why. */
  readonly trail: string[] = []
  readonly tally = { cuts: 0, repeats: 0, connects: 0, fresh: 0, doubts: 0, again: 0 }
  readonly #host: Host
  readonly #thread: number
  readonly #trouble: Trouble | undefined
  #client!: Client
  #line!: Line

  constructor(host: Host, thread: number, trouble?: Trouble) {
    this.#host = host
    this.#thread = thread
    this.#trouble = trouble
  }

  get threadId(): string {
    return `thread-${this.#thread}`
  }

  /** What is on its screen, without what sets it apart from others of its life. */
  shown(): string[] {
    const messages = this.#client.agent.messages
    return lines(messages)
      .map(withoutNumbers)
      .filter((line) => line !== 'reasoning: ') // a thought taken back, of which nothing is seen
  }

  async live(life: Life, afterTurn: () => void = () => {}): Promise<void> {
    await this.open()
    for (const [n, turn] of life.entries()) {
      await this.#turn(turn, n)
      afterTurn()
    }
  }

  /** A new page, which knows nothing. */
  async open(kind = this.#chance(this.#trouble?.cores ?? 0) ? 'core' : 'http'): Promise<void> {
    for (;;) {
      await this.#host.ready()
      const opened = kind === 'core' ? coreClient(this.#host.url, this.threadId) : undefined
      try {
        const core = await opened
        core?.core.addTool({ ...paint, parameters: undefined, handler: async () => painted })
        this.#client = core ?? httpClient(this.#host.url, this.threadId)
        break
      } catch {} // the server went away while the page was loading
    }
    const agent = this.#client.agent as unknown as { fetch: Line['fetch'] }
    this.#line = new Line(agent.fetch, this.#client.streams, () => this.#cut())
    agent.fetch = this.#line.fetch
  }

  async connect(): Promise<void> {
    await this.#through(() => this.#connect())
  }

  async #turn(turn: Turn, n: number): Promise<void> {
    const id = `u${this.#thread}-${n}`
    const message = userMessage(wordsOf(turn, this.#thread, n), id)
    for (let step = 0; step < 30; step++) {
      const held = this.#client.agent.messages as Held[]
      const asks = this.#client.agent.pendingInterrupts
      const call = openCall(held)
      if (!held.some((one) => one.id === id)) {
        // The same id of the run too: should the first request come late, it is the same request.
        await this.#through(() => {
          this.#client.agent.addMessage(message)
          return this.#run({ runId: `${id}-run` })
        })
      } else if (asks.length > 0) await this.#answer(asks, turn)
      else if (call) {
        await this.#through(() => {
          this.#client.agent.addMessage({ ...toolMessage(call, painted), id: `${call}-result` })
          return this.#run()
        })
      } else return
    }
    throw new Error(`${this.threadId}: turn ${n} does not end\n${this.shown().join('\n')}`)
  }

  async #answer(asks: readonly Ask[], turn: Turn): Promise<void> {
    if (this.#chance(0.2)) {
      await this.open()
      await this.connect()
      return // and looks again at what there is to answer
    }
    const resume = asks.map((ask, i) => ({
      ...{ interruptId: ask.id, status: 'resolved' as const },
      payload: this.#decision(ask, turn.approves[i] ?? true),
    }))
    const twice = this.#chance(0.15) ? this.#otherPage(resume) : undefined
    const reused = this.#chance(0.3) ? { runId: this.#line.last?.body.runId } : {}
    await this.#through(() => this.#run({ resume, ...reused }))
    await twice
    if (this.#client.agent.pendingInterrupts.length > 0 || !this.#chance(0.2)) return
    this.tally.again++
    await this.#through(() => this.#run({ resume }))
  }

  #decision({ metadata }: Ask, approved: boolean): object {
    if (metadata?.kind !== 'in_doubt') {
      return approved ? { approved } : { approved, reason: 'Not today' }
    }
    this.tally.doubts++
    const { what } = metadata.input as { what: string }
    // The person looks: everything is done once at most.
    const mark = this.#host.marks().find((one) => one.what === what)
    return mark
      ? { outcome: 'happened', result: `${mark.tool} ${what}: done` }
      : { outcome: 'did_not' }
  }

  /** The same answer from somewhere else, at the same time. */
  async #otherPage(resume: object[]): Promise<void> {
    const other = httpClient(this.#host.url, this.threadId)
    this.tally.again++
    await other.run({ resume: resume as never, tools: [paint] }).catch(() => {})
    if (other.errors.length > 0) this.#problem(`another page was told ${other.errors}`)
  }

  /** Until a stream came to its end: what the client holds then is what there was. */
  async #through(act: () => Promise<unknown>): Promise<void> {
    let next = act
    for (let tries = 0; tries < 60; tries++) {
      await this.#host.ready()
      if (await this.#whole(next)) return
      await this.#host.ready()
      next = await this.#wayBack()
    }
    throw new Error(`${this.threadId}: no stream comes to its end`)
  }

  /** What somebody does whose connection broke. */
  async #wayBack(): Promise<() => Promise<unknown>> {
    const { url = '', body } = this.#line.last ?? {}
    const again = url.endsWith('/run')
    const way = this.#trouble?.random.below(3) ?? 0
    if (again && way === 0) {
      this.tally.repeats++
      return () => {
        this.#client.agent.setMessages(body.messages)
        const { runId, resume } = body
        return this.#run({ runId, ...(resume && { resume }) })
      }
    }
    // A page that holds a question refuses to connect before it is answered: it is loaded again.
    if (way === 2 || this.#client.agent.pendingInterrupts.length > 0) {
      this.tally.fresh++
      await this.open()
    } else this.tally.connects++
    return () => this.#connect()
  }

  #run(options: Parameters<Client['run']>[0] = {}) {
    return this.#client.run({ tools: [paint], ...options })
  }

  async #connect(): Promise<void> {
    const { events } = await this.#client.connect({ tools: [paint] })
    // Nobody knows the thread: what this page has of it was never taken.
    if (events.length === 0 && this.#line.last?.stream?.whole) this.#client.agent.setMessages([])
  }

  async #whole(act: () => Promise<unknown>): Promise<boolean> {
    const { epoch } = this.#host
    const errors = this.#client.errors.length
    let failure: unknown
    await act().catch((error: unknown) => {
      failure = error
    })
    const { status = 0, stream, cut } = this.#line.last ?? {}
    this.trail.push(tellOf(this.#client, this.#line.last))
    if (stream?.whole && !failure && !cut) {
      const told = this.#client.errors.slice(errors)
      if (stream.events.at(-1)?.type === 'RUN_ERROR') told.push(JSON.stringify(stream.events))
      if (told.length > 0) this.#problem(`was told ${told}`)
      return true
    }
    if (cut) this.tally.cuts++
    else if (status >= 400 || stream?.whole || epoch === this.#host.epoch)
      this.#problem(`status ${status}, ${String(failure)}, without a cut`)
    return false
  }

  #problem(what: string): void {
    this.problems.push(`${this.threadId}: ${what}`)
    if (this.problems.length > 5) throw new Error(this.problems.join('\n'))
  }

  #chance(share: number): boolean {
    return this.#trouble?.random.chance(share) ?? false
  }

  #cut(): Cut | undefined {
    if (!this.#chance(0.3)) return undefined
    const { random } = this.#trouble!
    return random.chance(0.3) ? { after: random.below(12) } : { chunks: 1 + random.below(14) }
  }
}

/** `http run cut: RUN_STARTED CUSTOM ...`, and the messages that a request with news brought. */
function tellOf(client: Client, last: Call | undefined): string {
  const kind = 'core' in client ? 'core' : 'http'
  const { url = '', body, status, stream, cut } = last ?? {}
  const news = (body?.messages ?? []).slice(-2).map((one: Held) => `${one.role} ${one.id}`)
  const end = cut ? 'cut' : stream?.whole ? 'whole' : 'broken'
  const heard = stream ? shape(stream.events).join(' ') : status
  return `${kind} ${url.split('/').at(-1)} ${body?.runId} [${news}] ${end}: ${heard}`
}

/** A call of the client's tool that nobody answered. */
function openCall(messages: readonly Held[]): string | undefined {
  const answered = new Set(messages.map(({ toolCallId }) => toolCallId))
  type Call = { id: string; function: { name: string } }
  const calls = messages.flatMap(({ toolCalls = [] }) => toolCalls as Call[])
  return calls.find((call) => call.function.name === 'paint' && !answered.has(call.id))?.id
}
