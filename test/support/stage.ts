import { draft } from '../../src/core/entries.ts'
import {
  type Cursor,
  cursorAt,
  follow,
  namesText,
  parseCursor,
  type Step,
} from '../../src/core/follow.ts'
import { textOf } from '../../src/core/messages.ts'
import type { Bus, Store } from '../../src/core/store.ts'
import { shownKey } from '../../src/core/tail.ts'
import { Thread } from '../../src/core/thread.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { newId } from '../../src/lib/ids.ts'
import { memoryStore } from '../../src/stores/memory/store.ts'
import { type EntryStep, openText, pieceId } from '../../src/wires/sse.ts'

const actor = { type: 'agent', id: 'assistant' } as const
const runId = 'run'

/** One thread on several servers, one of which drives it, and all that was ever written on it. */
export class Stage {
  readonly threads: Thread[]
  readonly store: Store
  /** The whole text of every message, as far as it was written. */
  readonly written = new Map<string, string>()
  /** Messages that are being written now. */
  open: string[] = []
  driver: Thread | undefined
  fence = 0
  legs = 0
  #pieces = 0
  #messages = 0
  readonly #unlisten: (() => void)[]

  constructor(buses: readonly Bus[], threadId: string) {
    this.store = memoryStore({ clock: systemClock })
    this.threads = buses.map((bus) => {
      const around = { store: this.store, bus, clock: systemClock, newId, crash: () => {} }
      return new Thread(threadId, around)
    })
    this.#unlisten = buses.map((bus, i) =>
      bus.listen((rung, seq) => {
        const thread = this.threads[i]!
        if (rung === threadId && thread.state.seq < seq) void thread.sync()
      }),
    )
  }

  async create(): Promise<void> {
    const [first] = this.threads
    const name = { tenant: 't', owner: 'o', clientId: 'c' }
    await first!.commit([draft('thread.created', { ...name, agent: 'assistant' })], {
      guard: {},
      actor,
    })
  }

  /** A server takes the thread from whoever has it, and begins to write. */
  async begin(server: number): Promise<void> {
    const { threadId } = this.threads[0]!
    const thread = this.threads[server]!
    await thread.sync()
    const claimed = await this.store.claim(threadId, `server ${server}`, 60_000, true)
    this.fence = claimed!.fence
    const guard = { fence: this.fence }
    const drafts = [draft('run.queued', { agent: 'assistant', why: 'recover' }, { runId })]
    const lost = this.open
    if (lost.length > 0) {
      const why = 'cut'
      await thread.commit([draft('message.retracted', { ids: lost, why }, { runId })], {
        guard,
        actor,
      })
    }
    for (const id of lost) this.written.delete(id)
    this.open = []
    this.driver = thread
    await thread.commit(drafts, { guard, actor })
    thread.tail.begin(this.fence, runId, thread.state.seq)
    const started = draft('run.started', { leg: ++this.legs, parentRunId: null }, { runId })
    await thread.commit([started], { guard, actor })
  }

  /** A piece of a new message, or of one that is open. */
  push(of = 0): void {
    const { driver } = this
    if (!driver) return
    if (of >= this.open.length) {
      const id = `m${++this.#messages}`
      this.open.push(id)
      this.written.set(id, '')
    }
    const id = this.open[Math.min(of, this.open.length - 1)]!
    const text = `${++this.#pieces};`
    this.written.set(id, this.written.get(id)! + text)
    driver.tail.push({ kind: 'text', id, text })
  }

  /** A message is finished. */
  async say(of = 0): Promise<void> {
    const id = this.open[of % Math.max(1, this.open.length)]
    if (id === undefined || !this.driver) return
    this.open = this.open.filter((one) => one !== id)
    const message = {
      id,
      role: 'assistant' as const,
      parts: [{ type: 'text' as const, text: this.written.get(id)! }],
    }
    const said = draft('message.added', { message, for: 'both' }, { runId })
    await this.driver.commit([said], { guard: { fence: this.fence }, actor })
  }

  /** A command that has nothing to do with what is being written, from any server. */
  async note(server: number): Promise<void> {
    const thread = this.threads[server]!
    await thread.commit([draft('event', { name: 'note', value: {} })], { guard: {}, actor })
  }

  /** The leg ends; nobody drives. */
  async end(): Promise<void> {
    if (!this.driver) return
    for (; this.open.length > 0; ) await this.say()
    const { driver } = this
    this.driver = undefined
    await driver.commit([draft('run.waiting', { askIds: [] }, { runId })], {
      guard: { fence: this.fence },
      actor,
    })
  }

  close(): void {
    for (const unlisten of this.#unlisten) unlisten()
  }
}

/** A client as a page is one: it shows what it is told, and comes back where it left. */
export class Page {
  readonly #stage: Stage
  /** It comes back with the ids of frames, and takes of an entry only what it was not sent before. */
  readonly #exact: boolean
  readonly texts = new Map<string, string>()
  readonly finished = new Set<string>()
  cursor = '0'
  /** What it was told wrongly, if anything. */
  problem: string | undefined
  retractions = 0
  #leave: (() => void) | undefined
  #left: Promise<void> = Promise.resolve()

  constructor(stage: Stage, exact = false) {
    this.#stage = stage
    this.#exact = exact
  }

  get connected(): boolean {
    return this.#leave !== undefined
  }

  connect(server: number): void {
    if (this.#leave) return
    const gone = new AbortController()
    this.#leave = () => gone.abort()
    const from = this.cursor === '0' ? cursorAt(0) : parseCursor(this.cursor)
    this.#left = this.#read(this.#stage.threads[server]!, from, gone.signal)
  }

  async leave(): Promise<void> {
    this.#leave?.()
    this.#leave = undefined
    await this.#left
  }

  async #read(thread: Thread, from: Cursor, signal: AbortSignal): Promise<void> {
    for await (const step of follow(thread, from, signal)) {
      if (signal.aborted) return // told to nobody
      switch (step.type) {
        case 'pieces':
          for (const { kind, id, text } of step.pieces) {
            if (kind !== 'text') continue
            if (this.finished.has(id)) this.problem ??= `${id} goes on after its end`
            this.texts.set(id, (this.texts.get(id) ?? '') + text)
            this.#check(id)
          }
          this.cursor = this.#exact
            ? idAfter(step)
            : `${step.seq}.${step.fence}.${step.from + step.pieces.length}`
          break
        case 'retract':
          this.retractions++
          for (const id of step.ids) {
            if (this.finished.has(id)) this.problem ??= `${id} is retracted after its end`
            this.texts.delete(id)
          }
          if (this.#exact) this.cursor = step.seq + namesText(runId)
          break
        case 'entry':
          if (this.#exact) this.#rest(step)
          this.#entry(step.entry)
          this.cursor = this.#exact
            ? step.entry.seq + openText(step) + namesText(runId)
            : String(step.entry.seq)
      }
    }
  }

  /** What was sent before and the rest are the whole text, once. */
  #rest({ entry, shown }: EntryStep): void {
    if (entry.kind !== 'message.added') return
    const { id } = entry.body.message
    const text = textOf(entry.body.message)
    const had = this.texts.get(id) ?? ''
    const all = had + text.slice(shown.get(shownKey('text', id)) ?? 0)
    if (all !== text) this.problem ??= `${id}: ${had} and the rest are ${all}, not ${text}`
  }

  #entry(entry: Parameters<Parameters<Thread['listen']>[0]>[0]): void {
    if (entry.kind === 'message.retracted')
      for (const id of entry.body.ids) {
        this.texts.delete(id)
        this.finished.add(id)
      }
    if (entry.kind !== 'message.added') return
    const { message } = entry.body
    const text = textOf(message)
    const shown = this.texts.get(message.id) ?? ''
    if (!text.startsWith(shown)) this.problem ??= `${message.id}: ${shown} is no start of ${text}`
    this.texts.set(message.id, text)
    this.finished.add(message.id)
  }

  #check(id: string): void {
    const shown = this.texts.get(id)!
    const written = this.#stage.written.get(id)
    if (written !== undefined && !written.startsWith(shown))
      this.problem ??= `${id}: ${shown} is no start of ${written}`
  }
}

function idAfter({ seq, fence, from, pieces, sent }: Step & { type: 'pieces' }): string {
  const counts = new Map(sent)
  let id = ''
  for (const [i, piece] of pieces.entries())
    id = pieceId({ seq, fence, offset: from + i + 1 }, piece, counts)
  return id + namesText(runId)
}
