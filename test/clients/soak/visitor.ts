import type { Random } from '../../crash/random.ts'
import { type Client, httpClient, lines, toolMessage, userMessage } from '../support.ts'
import type { Host } from './host.ts'
import type { Cut } from './line.ts'
import { type Life, type Turn, withoutNumbers, wordsOf } from './lives.ts'
import { type Kind, Page, paint, painted } from './page.ts'

type Ask = Client['agent']['pendingInterrupts'][number]
type Call = { id: string; function: { name: string } }
type Held = { id: string; toolCallId?: string; toolCalls?: Call[] }

/** Somebody who lives one life on one thread, whatever happens to the connection or the server. */
export class Visitor {
  readonly problems: string[] = []
  /** What it did and what came of it, for who has to find out why. */
  readonly trail: string[] = []
  readonly tally = {
    requests: 0,
    cuts: 0,
    broken: 0,
    repeats: 0,
    reloads: 0,
    doubts: 0,
    again: 0,
    cores: 0,
  }
  readonly #host: Host
  readonly #thread: number
  /** Without it the visitor is a calm one: it loses no connection and answers once. */
  readonly #random: Random | undefined
  #page!: Page

  constructor(host: Host, thread: number, random?: Random) {
    this.#host = host
    this.#thread = thread
    this.#random = random
  }

  get threadId(): string {
    return `thread-${this.#thread}`
  }

  get #agent(): Client['agent'] {
    return this.#page.client.agent
  }

  /** What is on its screen, without what sets it apart from others of its life. */
  shown(): string[] {
    const all = lines(this.#agent.messages).map(withoutNumbers)
    return all.filter((line) => line !== 'reasoning: ') // taken back: nothing is seen of it
  }

  async live(life: Life, afterTurn: () => void = () => {}): Promise<void> {
    await this.open()
    for (const [n, turn] of life.entries()) {
      await this.#turn(turn, n)
      afterTurn()
    }
  }

  /** A new page, which knows nothing. */
  async open(kind: Kind = this.#chance(0.25) ? 'core' : 'http'): Promise<void> {
    for (let tries = 0; ; tries++) {
      await this.#host.ready()
      try {
        this.#page = await Page.open(kind, this.#host.url, this.threadId, () => this.#cut())
        if (kind === 'core') this.tally.cores++
        return
      } catch (error) {
        if (tries > 10) throw error // else the server went away while the page was loading
      }
    }
  }

  async connect(): Promise<void> {
    await this.#through(() => this.#page.connect())
  }

  /** Looks at what it has, and does what there is to do, until there is nothing. */
  async #turn(turn: Turn, n: number): Promise<void> {
    const id = `u${this.#thread}-${n}`
    const message = userMessage(wordsOf(turn, this.#thread, n), id)
    for (let step = 0; step < 30; step++) {
      const held = this.#agent.messages as Held[]
      const asks = this.#agent.pendingInterrupts
      const call = openCall(held)
      if (!held.some((one) => one.id === id)) {
        // The same id of the run too: should the first request come late, it is the same request.
        await this.#say(message, `${id}-run`)
      } else if (asks.length > 0) await this.#answer(asks, turn)
      else if (call) await this.#say({ ...toolMessage(call, painted), id: `${call}-result` })
      else return
    }
    throw new Error(`${this.threadId}: turn ${n} does not end\n${this.trail.join('\n')}`)
  }

  async #say(message: Parameters<Client['agent']['addMessage']>[0], runId?: string) {
    await this.#through(() => {
      this.#agent.addMessage(message)
      return this.#page.run(runId === undefined ? {} : { runId })
    })
  }

  async #answer(asks: readonly Ask[], { approves }: Turn): Promise<void> {
    if (this.#chance(0.2)) {
      await this.open()
      return await this.connect() // and looks again at what there is to answer
    }
    const resume = asks.map((ask, i) => ({
      ...{ interruptId: ask.id, status: 'resolved' as const },
      payload: this.#decision(ask, approves[i] ?? true),
    }))
    const twice = this.#chance(0.15) ? this.#elsewhere(resume) : undefined
    // As pages do: under the id of the run that asked.
    const reused = this.#chance(0.3) ? { runId: this.#page.line.last?.body.runId } : {}
    await this.#through(() => this.#page.run({ resume, ...reused }))
    await twice
    if (this.#agent.pendingInterrupts.length > 0 || !this.#chance(0.2)) return
    this.tally.again++
    await this.#through(() => this.#page.run({ resume }))
  }

  #decision({ metadata }: Ask, approved: boolean): object {
    if (metadata?.kind !== 'in_doubt') {
      return approved ? { approved } : { approved, reason: 'Not today' }
    }
    this.tally.doubts++
    const { what } = metadata.input as { what: string }
    // The person looks: everything is done once at most.
    const mark = this.#host.marks().find((one) => one.what === what)
    if (!mark) return { outcome: 'did_not' }
    return { outcome: 'happened', result: `${mark.tool} ${what}: done` }
  }

  /** The same answer from another page, at the same time. */
  async #elsewhere(resume: object[]): Promise<void> {
    const other = httpClient(this.#host.url, this.threadId)
    this.tally.again++
    await other.run({ resume: resume as never, tools: [paint] }).catch(() => {})
    if (other.errors.length > 0) this.#problem(`another page was told ${other.errors}`)
  }

  /** Until a stream came to its end: what the page holds then is what there was. */
  async #through(act: () => Promise<unknown>): Promise<void> {
    let next = act
    for (let tries = 0; tries < 60; tries++) {
      await this.#host.ready()
      const { epoch } = this.#host
      const { end, errors } = await this.#page.try(next)
      this.tally.requests++
      this.trail.push(`${end}: ${this.#page.tell()}`)
      if (end === 'refused' || (end === 'whole' && errors.length > 0))
        this.#problem(`was told ${errors}`)
      if (end === 'whole') return
      if (end === 'cut') this.tally.cuts++
      else this.tally.broken++
      // Where nobody answered at all, an idle connection was closed while it was taken up again.
      const answered = this.#page.line.last?.status !== undefined
      if (end === 'broken' && answered && epoch === this.#host.epoch)
        this.#problem(`nobody cut it: ${errors}`)
      await this.#host.ready()
      next = await this.#wayBack()
    }
    throw new Error(`${this.threadId}: no stream comes to its end\n${this.trail.join('\n')}`)
  }

  /** What somebody does whose connection broke: the same again, a look, or a new page. */
  async #wayBack(): Promise<() => Promise<unknown>> {
    const way = this.#random?.below(3) ?? 0
    if (way === 0 && this.#page.line.last!.url.endsWith('/run')) {
      this.tally.repeats++
      return () => this.#page.repeat()
    }
    // A page that holds a question refuses to connect before it is answered: it is loaded again.
    if (way === 2 || this.#agent.pendingInterrupts.length > 0) {
      this.tally.reloads++
      await this.open()
    }
    return () => this.#page.connect()
  }

  #problem(what: string): void {
    this.problems.push(`${this.threadId} ${what}\nafter\n  ${this.trail.join('\n  ')}`)
    if (this.problems.length > 5) throw new Error(this.problems[0])
  }

  #chance(share: number): boolean {
    return this.#random?.chance(share) ?? false
  }

  #cut(): Cut | undefined {
    const random = this.#random
    if (!random?.chance(0.35)) return undefined
    return random.chance(0.3) ? { after: random.below(12) } : { chunks: 1 + random.below(12) }
  }
}

/** A call of the client's tool that nobody answered. */
function openCall(messages: readonly Held[]): string | undefined {
  const answered = new Set(messages.map(({ toolCallId }) => toolCallId))
  const calls = messages.flatMap(({ toolCalls = [] }) => toolCalls)
  return calls.find((call) => call.function.name === 'paint' && !answered.has(call.id))?.id
}
