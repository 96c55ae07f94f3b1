import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from '../crash/random.ts'
import { Screen } from '../crash/reader.ts'
import { type ChatsClient, chatsClient, type Frame, type Stream } from '../support/chats.ts'

/** Many steps, one after another: there is always a next one that another server can take. */
export const walks = ['walk']

export const words = [
  ...['text 40', 'slow 100', 'slow 300', 'slow 300', 'think 10', 'approve', 'free', 'safe'],
  ...['three', 'steps', 'deaf', 'walk'],
]

/** What a visitor saw of a rollout. */
export interface Diary {
  runs: number
  failures: string[]
  /** Times a stream ended early, and how long it took until the next frame came elsewhere. */
  gaps: number[]
  /** Times a server asked to come back later, in the way that stock clients understand. */
  askedToWait: number
}

/** Who a visitor is; what it says has numbers of its own. */
interface Who {
  name: string
  numbers: number
  says?: readonly string[]
}

/** A stock client: fetch for commands, what an EventSource does for streams, and no cleverness. */
export class Visitor {
  readonly diary: Diary = { runs: 0, failures: [], gaps: [], askedToWait: 0 }
  readonly #client: ChatsClient
  readonly #random: Random
  readonly #name: string
  readonly #numbers: number
  readonly #words: readonly string[]

  constructor(url: string, random: Random, { name, numbers, says = words }: Who) {
    this.#client = chatsClient(url)
    this.#random = random
    this.#name = name
    this.#numbers = numbers
    this.#words = says
  }

  async live(over: AbortSignal): Promise<void> {
    const { diary } = this
    while (!over.aborted) {
      const text = `${this.#random.pick(this.#words)} #${this.#numbers + diary.runs}`
      const chatId = `${this.#name}-${Math.floor(diary.runs / 6)}`
      diary.runs++
      try {
        await this.#run(chatId, text)
      } catch (error) {
        diary.failures.push(`${chatId} ${text}: ${(error as Error).message}`)
      }
    }
  }

  async #run(chatId: string, text: string): Promise<void> {
    const key = { 'idempotency-key': `${chatId} ${text}` }
    const stream = await this.#ask(() => this.#client.start(chatId, text, '', key))
    const id = stream.response.headers.get('x-interaction-id')!
    const screen = new Screen()
    const frames: Frame[] = []
    for await (const frame of this.#everything(chatId, id, stream)) {
      frames.push(frame)
      screen.take(frame)
      if (frame.event !== 'approval_required') continue
      const { approval_id, kind } = frame.data
      if (kind !== 'approval') this.diary.failures.push(`${chatId} ${text}: ${kind}`)
      const body = {
        approval_id,
        ...(kind === 'approval' ? { approved: true } : { outcome: 'skip' }),
      }
      const response = await this.#ask(() => this.#client.approve(chatId, id, body))
      if (!response.ok) throw new Error(`approving: ${response.status} ${await response.text()}`)
    }
    const problem = wrong(text, frames) ?? screen.problems[0]
    if (problem !== undefined) this.diary.failures.push(`${chatId} ${text}: ${problem}`)
  }

  /** All frames to the end, from as many streams as it takes. */
  async *#everything(chatId: string, id: string, first: Stream) {
    let stream = first
    for (let last = ''; ; ) {
      for await (const frame of stream.frames) {
        yield frame
        last = frame.id
        if (frame.event === 'interaction_complete') return
      }
      const since = Date.now()
      await sleep(stream.retry ?? 3_000)
      const path = `/chats/${chatId}/interactions/${id}/events`
      const headers = { 'last-event-id': last }
      stream = await this.#ask(() => this.#client.open('GET', path, undefined, headers))
      this.diary.gaps.push(Date.now() - since)
    }
  }

  /** Again where the server says when. */
  async #ask<T extends Response | Stream>(send: () => Promise<T>): Promise<T> {
    for (;;) {
      const given = await send()
      const response = given instanceof Response ? given : given.response
      const after = response.headers.get('retry-after')
      if (response.status !== 503 || after === null) return given
      this.diary.askedToWait++
      await sleep(Number(after) * 1_000)
    }
  }
}

const calls: Record<string, number> = {
  approve: 1,
  free: 1,
  safe: 1,
  three: 3,
  steps: 3,
  deaf: 1,
  walk: 8,
}

/** Compares with what the scripted model says, word by word. */
function wrong(text: string, frames: Frame[]): string | undefined {
  const [word = '', size = ''] = text.split(' ')
  const count = Number.parseInt(size, 10) || 12
  const whole = `${Array.from({ length: count }, (_, i) => `w${i} `).join('')}end.`
  const all = (event: string) => frames.filter((frame) => frame.event === event)
  const [answer, ...more] = all('answer')
  if (answer?.data.content !== whole || more.length > 0)
    return `answered ${JSON.stringify(all('answer').map(({ data }) => data.content))}`
  const results = all('tool_result').map(({ data }) => data.tool_output as string)
  if (results.length !== (calls[word] ?? 0) || results.some((one) => !/: done$/.test(one)))
    return `its calls came to ${JSON.stringify(results)}`
  const { status } = all('interaction_complete')[0]!.data
  return status === 'COMPLETED' ? undefined : `it is ${status}`
}
