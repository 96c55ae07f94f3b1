import { setTimeout as sleep } from 'node:timers/promises'
import type { ChatsClient, Stream } from '../support/chats.ts'
import { decisionFor } from './decisions.ts'
import type { Random } from './random.ts'
import { Reader } from './reader.ts'

/** What a client knows because the server said so. */
export interface Told {
  /** Interactions that were accepted, and their chats. */
  accepted: Map<string, string>
  /** Approvals that were said to be decided, and how. */
  answers: Map<string, { state: string; outcome?: string; chatId: string }>
  deleted: Set<string>
  /** The number of every message, and the chat it was said in. */
  numbers: Map<number, string>
}

export interface Chat {
  id: string
  readers: Map<string, Reader>
  settled: boolean
  /** Said with a key, and not heard of since: it is said again. */
  unsure?: { text: string; key: string }
  /** To be deleted; nothing else is done with it. */
  doomed: boolean
  cancelNext: boolean
  remember: boolean
  /** Called when a reader learns something. */
  news: () => void
}

export interface Interaction {
  id: string
  status: string
  superseded?: boolean
  approvals?: { approval_id: string; kind: string; tool_input: string | null }[]
}

/** One server for as long as it is there, or several. */
export interface Door {
  client: ChatsClient
  gone: AbortSignal
  /** Requests fail now and then: one tries again until it is gone. */
  patient?: boolean
}

interface Visit extends Door {
  wishes: readonly string[]
  /** Begin nothing new, answer everything. */
  settling: boolean
}

const words = [
  ...['text 40', 'text 200', 'slow 30', 'think 10', 'approve', 'free', 'safe', 'three', 'steps'],
  ...[
    'broken',
    'fail',
    'flaky',
    'note',
    'far',
    'once',
    'deaf',
    'key',
    'remember',
    'cancel',
    'delete',
    'create',
  ],
]
const endings = new Set(['COMPLETED', 'FAILED', 'CANCELLED'])

/** Somebody who uses the server whatever happens to it, and remembers what it said. */
export class Person {
  readonly told: Told = {
    ...{ accepted: new Map(), answers: new Map() },
    ...{ deleted: new Set(), numbers: new Map() },
  }
  readonly chats: Chat[] = []
  readonly problems: string[] = []
  readonly #random: Random
  readonly #outside: string
  readonly #name: string
  #said: number

  /** Several persons have names of their own, and numbers. */
  constructor(random: Random, outside: string, { name = 'chat', numbers = 0 } = {}) {
    this.#random = random
    this.#outside = outside
    this.#name = name
    this.#said = numbers
  }

  /** New chats and old ones, all at once, until the server is gone. */
  async live(door: Door, wishes: readonly string[] = []): Promise<void> {
    const visit = { ...door, wishes, settling: false }
    const open = this.chats.filter((chat) => !chat.settled)
    const settled = this.#random.shuffled(this.chats.filter((chat) => chat.settled))
    const fresh = Array.from({ length: 2 }, () => this.#newChat())
    const mine = [...fresh, ...this.#random.shuffled(open).slice(0, 8), ...settled.slice(0, 2)]
    // A text that is being written when the end comes.
    const slow = this.#newChat()
    await Promise.all([
      this.#tend(slow, visit, 'slow 60'),
      ...mine.map((c) => this.#tend(c, visit)),
    ])
  }

  /** Answers everything that is open, until nothing is; then every chat takes another message. */
  async settle(door: Door): Promise<void> {
    const visit = { ...door, wishes: [], settling: true }
    for (let from = 0; from < this.chats.length; from += 24) {
      const some = this.chats.slice(from, from + 24)
      await Promise.all(
        some.map(async (chat) => {
          await this.#tend(chat, visit)
          await this.#tend(chat, visit, 'key')
          if (this.told.deleted.has(chat.id)) return
          const last = (await this.#look(chat, visit)).at(-1)
          if (last?.status !== 'COMPLETED')
            this.problems.push(`${chat.id}: the next message is ${JSON.stringify(last)}`)
        }),
      )
    }
  }

  get readers(): Reader[] {
    const chats = this.chats.filter((chat) => !chat.doomed)
    return chats.flatMap((chat) => [...chat.readers.values()])
  }

  #number(chat: Chat): number {
    this.told.numbers.set(++this.#said, chat.id)
    return this.#said
  }

  #newChat(): Chat {
    const chat: Chat = {
      id: `${this.#name}-${this.chats.length}`,
      readers: new Map(),
      ...{ settled: false, doomed: false, cancelNext: false, remember: false, news: () => {} },
    }
    this.chats.push(chat)
    return chat
  }

  async #tend(chat: Chat, visit: Visit, first?: string): Promise<void> {
    let say = first
    for (let left = 40; left > 0 && !visit.gone.aborted; ) {
      try {
        const word = say
        say = undefined
        if (word !== undefined) await this.#say(chat, [], visit, word)
        if (chat.doomed && (await this.#delete(chat, visit))) return
        if (chat.doomed) continue
        const going = await this.#step(chat, visit)
        if (going === 'settled') return
        if (going === 'acted') left--
      } catch (error) {
        if (!(await excused(error, visit)))
          this.problems.push(`${chat.id}: ${(error as Error).stack}`)
        else if (visit.patient) continue
        return
      }
    }
  }

  async #step(chat: Chat, visit: Visit): Promise<'settled' | 'acted' | 'waited'> {
    if (chat.unsure) {
      await this.#start(chat, visit, chat.unsure.text, chat.unsure.key)
      return 'acted'
    }
    const seen = await this.#look(chat, visit)
    const open = seen.filter(({ status }) => !endings.has(status))
    chat.settled = open.length === 0
    const waiting = open.find(({ approvals }) => approvals !== undefined)
    if (waiting) {
      await this.#answer(chat, waiting, visit)
      return 'acted'
    }
    if (open.length > 0) {
      const heard = new Promise<void>((resolve) => {
        chat.news = resolve
      })
      const limit = new AbortController()
      const wait = visit.patient ? 400 : 60
      await Promise.race([heard, sleep(wait, undefined, { signal: limit.signal }).catch(() => {})])
      limit.abort()
      if (visit.settling || !(chat.cancelNext || this.#random.chance(0.03))) return 'waited'
      chat.cancelNext = false
      await this.#cancel(chat, this.#random.pick(open), visit)
      return 'acted'
    }
    if (visit.settling) return 'settled'
    const wished = visit.wishes.length > 0 && this.#random.chance(0.5)
    await this.#say(chat, seen, visit, this.#random.pick(wished ? visit.wishes : words))
    return 'acted'
  }

  /** The chat as the server shows it; each interaction of it has a reader. */
  async #look(chat: Chat, { client, settling }: Visit): Promise<Interaction[]> {
    const path = `/chats/${chat.id}?include=superseded`
    const { interactions } = (await this.#ask(client.request('GET', path), [404])) ?? {}
    for (const { id } of (interactions ?? []) as Interaction[]) {
      const reader = chat.readers.get(id) ?? this.#reader(chat, id)
      if (reader.over || reader.attached) continue
      const patience = settling || this.#random.chance(0.7) ? 1e9 : 1 + this.#random.below(30)
      reader.attached = true
      void client.join(chat.id, id, reader.last).then(
        (stream) => reader.follow(stream, patience, () => chat.news()),
        () => {
          reader.attached = false
        },
      )
    }
    return interactions ?? []
  }

  #reader(chat: Chat, id: string): Reader {
    const reader = new Reader(chat.id, id)
    chat.readers.set(id, reader)
    return reader
  }

  async #say(chat: Chat, seen: Interaction[], visit: Visit, word: string): Promise<void> {
    const { client } = visit
    if (word === 'delete') {
      chat.doomed = true
      return
    }
    if (word === 'create') {
      const { id } = this.#newChat()
      await this.#ask(client.request('POST', '/chats', { id, title: `Chat ${id}` }), [])
      return
    }
    if (word === 'remember') chat.remember = true
    if (word === 'cancel') chat.cancelNext = true
    const said = { remember: 'approve', cancel: 'slow 40', key: 'text 5' }[word] ?? word
    const text = `${said} #${this.#number(chat)}`
    const last = seen.at(-1)
    if (last?.status === 'FAILED' && !last.superseded && this.#random.chance(0.3)) {
      await this.#accepted(chat, client.open('POST', `${pathOf(chat, last)}/retry`), last.id)
    } else if (last && this.#random.chance(0.12)) {
      const old = this.#random.pick(seen)
      await this.#accepted(chat, client.edit(chat.id, old.id, text))
    } else if (word === 'key' || this.#random.chance(0.2)) {
      chat.unsure = { text, key: `key-${this.#said}` }
      await this.#start(chat, visit, text, chat.unsure.key)
    } else {
      await this.#start(chat, visit, text)
      if (this.#random.chance(0.15)) await this.#start(chat, visit, `free #${this.#number(chat)}`)
    }
  }

  async #start(chat: Chat, { client }: Visit, text: string, key?: string): Promise<void> {
    const whenBusy = this.#random.chance(0.3) ? 'cancel' : 'queue'
    const path = `/chats/${chat.id}/interactions?when_busy=${whenBusy}`
    const body = { user_message: text, ...agentFor(text) }
    await this.#accepted(chat, client.open('POST', path, body, withKey(key)))
    delete chat.unsure
  }

  async #accepted(chat: Chat, opening: Promise<Stream>, id?: string): Promise<void> {
    const stream = await opening
    const { response } = stream
    if (!response.ok) {
      this.#judge(response.status, await response.text(), [409])
      return
    }
    const runId = id ?? response.headers.get('x-interaction-id')!
    this.told.accepted.set(runId, chat.id)
    const known = chat.readers.get(runId)
    if (known) {
      // Its own reader goes on where it was; a retry's stream begins somewhere else.
      known.over = false
      stream.leave()
      return
    }
    const patience = this.#random.chance(0.7) ? 1e9 : 1 + this.#random.below(30)
    void this.#reader(chat, runId).follow(stream, patience, () => chat.news())
  }

  async #answer(chat: Chat, { id, approvals = [] }: Interaction, visit: Visit): Promise<void> {
    const random = this.#random
    // Under the same key, another decision than one that was given up on and arrives late.
    const mixed = visit.patient ? [422] : []
    for (const approval of approvals) {
      const before = this.told.answers.get(approval.approval_id)
      if (before)
        this.problems.push(`${approval.approval_id}: said ${before.state}, and is asked again`)
      const decision = decisionFor(approval, this.#outside, visit.settling ? undefined : random)
      if (decision === 'cancel') return await this.#cancel(chat, { id }, visit)
      const remember = chat.remember && approval.kind === 'approval' ? { remember: true } : {}
      const body = { approval_id: approval.approval_id, ...remember, ...decision }
      chat.remember = false
      const key = withKey(random.chance(0.3) ? `a-${approval.approval_id}` : undefined)
      const times = random.chance(0.2) ? 2 : 1
      const sent = Array.from({ length: times }, () =>
        this.#ask(visit.client.approve(chat.id, id, body, key), [400, 409, ...mixed]),
      )
      for (const said of await Promise.all(sent)) {
        const { state, outcome } = said?.error?.decision ?? said ?? {}
        if (state === undefined) continue
        const { state: before } = this.told.answers.get(approval.approval_id) ?? { state }
        if (before !== state) this.problems.push(`${approval.approval_id}: ${before}, ${state}`)
        const more = outcome === undefined ? {} : { outcome }
        this.told.answers.set(approval.approval_id, { state, ...more, chatId: chat.id })
      }
    }
  }

  async #cancel(chat: Chat, { id }: Pick<Interaction, 'id'>, { client }: Visit): Promise<void> {
    await this.#ask(client.cancel(chat.id, id), [409])
  }

  /** Whether it is over: a server that goes meanwhile is asked again another time. */
  async #delete(chat: Chat, { client, patient = false }: Visit): Promise<boolean> {
    await this.#ask(client.request('DELETE', `/chats/${chat.id}`), [404, 409])
    const after = await client.request('GET', `/chats/${chat.id}`)
    if (after.status !== 404) return !patient
    this.told.deleted.add(chat.id)
    chat.settled = true
    return true
  }

  // biome-ignore lint/suspicious/noExplicitAny: the wire's JSON
  async #ask(sent: Promise<Response>, mayBe: number[]): Promise<any> {
    const response = await sent
    const text = await response.text()
    if (!response.ok) this.#judge(response.status, text, mayBe)
    return text === '' ? undefined : JSON.parse(text)
  }

  #judge(status: number, text: string, mayBe: number[]): void {
    if (status === 503 && text.includes('"stopping"')) return
    if (!mayBe.includes(status)) this.problems.push(`unexpected ${status}: ${text}`)
  }
}

/** A connection that breaks is the server's end; it may take a moment until we hear of that. */
async function excused(error: unknown, { gone, patient }: Visit): Promise<boolean> {
  const known = !patient || isBroken(error)
  for (let n = 0; n < (patient ? 5 : 100) && !gone.aborted; n++) await sleep(20)
  return known && (patient === true || gone.aborted)
}

/** What a client may be told by a network, and by a server that asks for patience. */
const isBroken = (error: unknown): boolean =>
  error instanceof TypeError || (error as Error).name === 'Away'

/** The agent that some words are for. */
function agentFor(text: string): { agent?: string } {
  if (text.startsWith('note')) return { agent: 'notes' }
  const remote = ['far', 'once'].find((name) => text.startsWith(name))
  return remote === undefined ? {} : { agent: remote }
}

const pathOf = (chat: Chat, { id }: { id: string }) => `/chats/${chat.id}/interactions/${id}`
const withKey = (key?: string): Record<string, string> =>
  key === undefined ? {} : { 'idempotency-key': key }
