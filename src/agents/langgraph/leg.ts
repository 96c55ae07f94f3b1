import type { RunnableConfig } from '@langchain/core/runnables'
import { Command, GraphInterrupt, GraphRecursionError, getConfig } from '@langchain/langgraph'
import type { AgentContext, AgentEvent } from '../../core/agent.ts'
import { connectionSecrets } from '../../core/connection-secrets.ts'
import { RuntimeError } from '../../core/errors.ts'
import { isStop, LegStop } from '../../core/leg.ts'
import { callsOf, type Message } from '../../core/messages.ts'
import { sha256 } from '../../lib/canonical.ts'
import { withoutTexts } from '../../lib/masked.ts'
import { offshoot } from '../../lib/signal.ts'
import { inPieces, Listener } from './callbacks.ts'
import { type Here, runHere } from './here.ts'
import { allowed, type Head, inputFor, shown, stateChanges } from './input.ts'
import { fromLangChain, toLangChain } from './messages.ts'
import type { AnyGraph, Settled } from './options.ts'
import { Outlet } from './outlet.ts'
import { breakpointAt, interruptsAt, questionOf, resumeOf, waits } from './questions.ts'
import { type Rec, Records } from './records.ts'
import { JournalSaver } from './saver.ts'
import { Telling } from './telling.ts'

/** What the graph goes on with, and whether what the client changed is in it; `over`: it shall not go on. */
type Next = { input: object | null; takes?: boolean } | 'over' | undefined

/** One leg of a graph: from the checkpoint that the branch is at, until it is done or people must answer. */
export class GraphLeg implements Here {
  readonly ctx: AgentContext
  readonly ours = new Set<string>()
  readonly answers = new Map<string, Message>()
  readonly #graph: AnyGraph
  readonly #options: Settled
  readonly #records = new Records()
  readonly #saver: JournalSaver
  readonly #out = new Outlet<AgentEvent>()
  readonly #over = new AbortController()
  /** Effects that have begun: the leg does not end before them. */
  readonly #running = new Set<Promise<unknown>>()
  readonly #ordinals = new Map<string, number>()
  #telling: Telling
  /** Whether the run has got to a checkpoint of its own. */
  #begun = false
  /** Steps that the run has taken. */
  #steps = 0
  /** The client's copy of the state that the graph has taken. */
  #given: string | undefined
  #stop: LegStop | undefined

  constructor(graph: AnyGraph, options: Settled, ctx: AgentContext) {
    this.ctx = ctx
    this.#options = options
    for (const { checkpointId, data, runId } of ctx.kept()) {
      const rec = data as Rec
      this.#records.add(checkpointId, rec)
      if (rec.type !== 'checkpoint' || rec.ns !== '') continue
      this.#begun = runId === ctx.runId
      this.#steps = this.#begun ? (rec.steps ?? 0) : 0
      this.#given = rec.given
    }
    this.#saver = new JournalSaver({
      threads: () => [ctx.threadId],
      records: () => this.#records,
      keep: (_threadId, checkpointId, rec) => this.#keep(checkpointId, rec),
      redact: (text) => withoutTexts(ctx.redact(text), operatorSecrets(options)),
    })
    // The graph as it is, but with the checkpoints of this branch.
    this.#graph = Object.create(graph, { checkpointer: { value: this.#saver, writable: true } })
    this.#telling = new Telling(ctx, options)
  }

  async *run(): AsyncGenerator<AgentEvent> {
    const leave = () => this.#out.leave()
    this.ctx.signal.addEventListener('abort', leave, { once: true })
    const late = setTimeout(() => this.#over.abort(), this.#options.timeoutSeconds * 1_000)
    void runHere(this, () => this.#work()).then(
      () => this.#out.end(),
      (error: unknown) => this.#out.end({ error }),
    )
    try {
      yield* this.#out.take()
    } finally {
      clearTimeout(late)
      this.ctx.signal.removeEventListener('abort', leave)
    }
  }

  async #work(): Promise<void> {
    const head = await this.#head()
    this.#telling = new Telling(this.ctx, this.#options, head?.values)
    if (head && !this.ctx.given())
      await this.#tell(this.#telling.state(shown(head.values, this.#options)))
    let next: Next = this.#begun
      ? ((await this.#answers(head)) ?? { input: null })
      : { input: await inputFor(this.#graph, this.#options, this.ctx, head), takes: true }
    while (next && next !== 'over') {
      if (next.takes) this.#given = this.ctx.given()?.id
      await this.#stream(next.input)
      const now = await this.#head()
      next = await this.#answers(now)
      if (this.#stop) throw this.#stop
      next ??= await this.#clientResults(now)
    }
  }

  /** Runs the graph until it ends or is interrupted. */
  async #stream(input: object | null): Promise<void> {
    const { maxIterations, name, streamMode } = this.#options
    const listener = new Listener(this, this.#telling, this.#options)
    const context = allowed(this.#options.context, this.ctx)
    const ends = offshoot(this.ctx.signal, this.#over.signal)
    const config = {
      configurable: {
        ...allowed(this.#options.configurable, this.ctx),
        thread_id: this.ctx.threadId,
      },
      ...(Object.keys(context).length > 0 && { context }),
      recursionLimit: Math.max(1, maxIterations - this.#steps),
      signal: ends.signal,
      streamMode: [
        'values',
        'tasks',
        'custom',
        ...(streamMode === 'full' ? (['updates'] as const) : []),
      ],
      subgraphs: true,
      durability: 'sync',
      callbacks: [listener],
      runName: name,
    } as const
    try {
      await this.ctx.hold() // nodes may have effects of their own
      const chunks = await this.#graph.stream(input, config as never)
      for await (const chunk of chunks as AsyncIterable<[string[], string, unknown]>)
        await this.#tell(this.#telling.take(...chunk))
    } catch (error) {
      await this.#settled()
      this.ctx.signal.throwIfAborted()
      throw this.#stop ?? this.#failure(error)
    } finally {
      ends.leave()
    }
    await this.#tell(this.#telling.rest())
    await this.#settled()
    this.ctx.signal.throwIfAborted()
    if (this.#stop && this.#stop.why !== 'parked') throw this.#stop
  }

  #failure(error: unknown): unknown {
    const { name, timeoutSeconds, maxIterations } = this.#options
    if (this.#over.signal.aborted)
      return new RuntimeError('agent_timeout', `${name} took longer than ${timeoutSeconds} s.`)
    if (error instanceof GraphRecursionError)
      return new RuntimeError(
        'too_many_steps',
        `${name} took ${maxIterations} steps and may not more.`,
      )
    return error
  }

  /** All that has begun has an outcome. */
  async #settled(): Promise<void> {
    while (this.#running.size > 0) await Promise.allSettled([...this.#running])
  }

  /** What people said to all that the graph asks; ends the leg until they have. Undefined: it asks nothing. */
  async #answers(head: Head | undefined): Promise<Next> {
    if (!head) return undefined
    const interrupts = interruptsAt(this.#records, head.id)
    const pause = await breakpointAt(this.#graph, this.#records, this.ctx.threadId, head.id)
    const questions = [...interrupts.map(questionOf), ...(pause ? [pause] : [])]
    const asked = await Promise.allSettled(questions.map((question) => this.ctx.ask(question)))
    const lost = asked
      .filter((one) => one.status === 'rejected')
      .map(({ reason }) => reason as unknown)
    if (lost.length > 0) throw lost.find((reason) => !isStop(reason, 'parked')) ?? lost[0]
    const answers = asked.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
    const update = this.#changes(head)
    const changed = Object.keys(update).length > 0 && (await this.#isInTheMiddle())
    if (pause && !isYes(answers.at(-1)?.state)) return 'over'
    if (interrupts.length === 0 && !changed) return pause && { input: null }
    const resume = interrupts.map((one, i) => [one.id, resumeOf(one, answers[i]!)])
    // A resume of nothing: the tasks stay what they are, with the change in the state.
    const all = resume.length > 0 ? resume : [[sha256(head.id).slice(0, 32), null]]
    const resumed = { resume: Object.fromEntries(all), ...(changed && { update }) }
    return { input: new Command(resumed), takes: changed }
  }

  /** What the client changed in the state, if the graph has not taken it yet. */
  #changes(head: Head | undefined): Record<string, unknown> {
    if (this.ctx.given()?.id === this.#given) return {}
    return stateChanges(this.#graph, this.#options, this.ctx, head)
  }

  /** Whether tasks wait: a graph that is done takes nothing but new input. */
  async #isInTheMiddle(): Promise<boolean> {
    const { next } = await this.#graph.getState({ configurable: { thread_id: this.ctx.threadId } })
    return next.length > 0
  }

  /** A graph that ends in calls of the client's tools goes on with their results. */
  async #clientResults(head: Head | undefined): Promise<Next> {
    const list: unknown[] = Array.isArray(head?.values.messages) ? head.values.messages : []
    const said = list.map((one) => fromLangChain(one as Parameters<typeof fromLangChain>[0], ''))
    const last = said.findLast(
      (message) => message?.role === 'assistant' || message?.role === 'user',
    )
    const done = new Set(said.map((message) => message?.callId))
    const tools = new Set(this.ctx.options.clientTools?.map(({ name }) => name))
    const open = (last ? callsOf(last) : []).filter(
      ({ callId, name }) => !done.has(callId) && tools.has(name),
    )
    if (open.length === 0) return undefined
    await this.ctx.call(open)
    const ids = new Set(open.map(({ callId }) => callId))
    const results = this.ctx
      .messages()
      .filter(({ callId = '', role }) => role === 'tool' && ids.has(callId))
    const input = { ...this.#changes(head), messages: results.map(toLangChain) }
    return { input, takes: true }
  }

  async #head(): Promise<Head | undefined> {
    const id = this.#records.last('')
    const rec = id === undefined ? undefined : this.#records.find('', id)
    if (id === undefined || !rec) return undefined
    const configurable = { thread_id: this.ctx.threadId, checkpoint_ns: '', checkpoint_id: id }
    const tuple = await this.#saver.getTuple({ configurable })
    const shown = new Set([this.#graph.streamChannelsAsIs].flat().map(String)) // others are the graph's own
    const values = Object.entries(tuple?.checkpoint.channel_values ?? {})
    return { id, rec, values: Object.fromEntries(values.filter(([name]) => shown.has(name))) }
  }

  #keep(checkpointId: string, rec: Rec): void {
    if (rec.type === 'checkpoint' && rec.ns === '') {
      const after = this.ctx.messages().at(-1)?.id
      if (!rec.metadata.includes('"source":"input"')) this.#steps++
      rec.steps = this.#steps
      if (after !== undefined) rec.after = after
      if (this.#given !== undefined) rec.given = this.#given
      this.#begun = true
    }
    this.#records.add(checkpointId, rec)
    this.ctx.keep(checkpointId, rec)
  }

  async #tell(events: Iterable<AgentEvent>): Promise<void> {
    for (const event of events) await this.say(event)
  }

  say(event: AgentEvent): Promise<void> {
    return this.ctx.signal.aborted ? Promise.resolve() : this.#out.put(event)
  }

  async sayState(state: object): Promise<void> {
    await this.#tell(this.#telling.over(state))
  }

  async sayText(id: string, text: string): Promise<void> {
    if (this.#options.streamMode !== 'updates')
      await this.#tell(inPieces({ kind: 'text', id, text }, this.#options.streamChunkSize))
    await this.say({
      type: 'message',
      message: { id, role: 'assistant', parts: [{ type: 'text', text }] },
    })
  }

  async through<T>(work: () => Promise<T>): Promise<T> {
    const running = work()
    this.#running.add(running)
    try {
      return await running
    } catch (error) {
      if (!(error instanceof LegStop)) throw error
      if (!this.#stop || this.#stop.why === 'parked') this.#stop = error
      // So that other branches come to their end, and no tool node takes it for a result.
      throw new GraphInterrupt([{ id: sha256(`${this.ctx.legId}`).slice(0, 32), value: waits }])
    } finally {
      this.#running.delete(running)
    }
  }

  async place(): Promise<string> {
    const config = getConfig() as RunnableConfig & { executionInfo?: { nodeAttempt?: number } }
    const task = String(config?.configurable?.checkpoint_ns ?? '')
    // A node that LangGraph runs again makes the same calls again, and gets the same answers.
    const attempt = `${task} ${config?.executionInfo?.nodeAttempt ?? 1}`
    const ordinal = this.#ordinals.get(attempt) ?? 0
    this.#ordinals.set(attempt, ordinal + 1)
    return `${task}#${ordinal}`
  }
}

/** Texts that the operator hands to nodes, as far as they may be keys. */
function operatorSecrets({ configurable, context }: Settled): readonly string[] {
  return [configurable, context].flatMap(({ values }) => connectionSecrets(values))
}

const isYes = (state: string | undefined): boolean => state === 'approved' || state === 'answered'
