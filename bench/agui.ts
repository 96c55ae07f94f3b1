import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { Agent, type IncomingMessage, request } from 'node:http'
import { words } from './source.mjs'

interface Said {
  id: string
  role: 'user' | 'assistant'
  content: string
}

const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY })

/** Connections that were idle for long may be closed by the server just when they are used. */
export const hangUp = (): void => agent.destroy()

/** A thread as a client has it: like the real ones it sends all its messages with every run. */
export class Chat {
  readonly threadId = randomUUID()
  readonly messages: Said[] = []
  readonly #url: string

  constructor(server: { url: string }, agent = 'default') {
    this.#url = `${server.url}/copilotkit/agent/${agent}/run`
  }

  /** Says it. `first`: milliseconds to the first delta; `heard` reads what came. */
  async say(content: string): Promise<{ first: number; chunks: Buffer[] }> {
    const since = performance.now()
    const response = await this.post(content)
    const chunks: Buffer[] = []
    let first = 0
    for await (const chunk of response as AsyncIterable<Buffer>) {
      if (first === 0 && chunk.includes(delta)) first = performance.now() - since
      chunks.push(chunk)
    }
    return { first, chunks }
  }

  async post(content: string): Promise<IncomingMessage> {
    this.messages.push({ id: randomUUID(), role: 'user', content })
    const { threadId, messages } = this
    const input = { threadId, runId: randomUUID(), messages, tools: [], context: [] }
    const body = Buffer.from(JSON.stringify({ ...input, state: {}, forwardedProps: {} }))
    const accepts = { accept: 'text/event-stream', 'content-type': 'application/json' }
    const headers = { ...accepts, 'content-length': body.length }
    const sent = request(this.#url, { method: 'POST', agent, headers })
    sent.end(body)
    const [response] = (await once(sent, 'response')) as [IncomingMessage]
    if (response.statusCode !== 200) throw new Error(`${this.#url}: ${response.statusCode}`)
    return response
  }

  /** Takes the answer, of so many messages, into the list; throws unless every delta of each is
   *  there and the run finished. */
  async heard(chunks: Buffer[], deltas: number, messages = 1): Promise<void> {
    const events = eventsOf(Buffer.concat(chunks).toString())
    const told = events.filter(({ type }) => type === 'TEXT_MESSAGE_CONTENT')
    const heard = new Map<string, string>()
    for (const { messageId, delta } of told)
      heard.set(messageId!, (heard.get(messageId!) ?? '') + delta)
    const text = await textOf(deltas)
    const whole = heard.size === messages && [...heard.values()].every((one) => one === text)
    const last = events.at(-1)?.type
    if (told.length !== deltas * messages || !whole || last !== 'RUN_FINISHED')
      throw new Error(
        `${told.length} of ${messages} x ${deltas} deltas came, and ${last} at the end`,
      )
    for (const [id, content] of heard) this.messages.push({ id, role: 'assistant', content })
  }
}

export const delta = '"TEXT_MESSAGE_CONTENT"'

function eventsOf(text: string) {
  const lines = text.split('\n').filter((line) => line.startsWith('data: '))
  return lines.map(
    (line) => JSON.parse(line.slice(6)) as { type: string; messageId?: string; delta?: string },
  )
}

const texts = new Map<number, string>()

/** All the words of an answer. */
async function textOf(deltas: number): Promise<string> {
  let text = texts.get(deltas) ?? ''
  if (text === '') for await (const word of words(deltas, deltas)) text += word.text
  texts.set(deltas, text)
  return text
}
