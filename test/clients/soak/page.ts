import { shape } from '../judge.ts'
import { type Client, coreClient, httpClient } from '../support.ts'
import { type Cut, Line } from './line.ts'

const parameters = { type: 'object', properties: { what: { type: 'string' } } }
/** The tool of the client, and what it always says. */
export const paint = { name: 'paint', description: 'Paints the page', parameters }
export const painted = { applied: 'teal' }

export type Kind = 'http' | 'core'
type Told = { id: string; role: string }

/** What became of a request: `whole`, or how it ended before its time. */
export interface Outcome {
  end: 'whole' | 'cut' | 'broken' | 'refused'
  /** Errors that the client was told of, and what it threw. */
  errors: string[]
}

/** One client with its connection, as somebody has it open. */
export class Page {
  readonly kind: Kind
  readonly client: Client
  readonly line: Line

  constructor(kind: Kind, client: Client, cutNext: () => Cut | undefined) {
    this.kind = kind
    this.client = client
    const agent = client.agent as unknown as { fetch: Line['fetch'] }
    this.line = new Line(agent.fetch, client.streams, cutNext)
    agent.fetch = this.line.fetch
  }

  static async open(kind: Kind, url: string, threadId: string, cutNext: () => Cut | undefined) {
    if (kind === 'http') return new Page(kind, httpClient(url, threadId), cutNext)
    const client = await coreClient(url, threadId)
    client.core.addTool({ ...paint, parameters: undefined, handler: async () => painted })
    return new Page(kind, client, cutNext)
  }

  run(options: Parameters<Client['run']>[0] = {}) {
    return this.client.run({ tools: [paint], ...options })
  }

  async connect(): Promise<void> {
    const { events } = await this.client.connect({ tools: [paint] })
    // Nobody knows the thread: what this page has of it was never taken.
    if (events.length === 0 && this.line.last?.stream?.whole) this.client.agent.setMessages([])
  }

  /** The last request once more, word for word. */
  repeat() {
    const { runId, resume, messages } = this.line.last!.body
    this.client.agent.setMessages(messages)
    return this.run({ runId, ...(resume && { resume }) })
  }

  async try(act: () => Promise<unknown>): Promise<Outcome> {
    const before = this.client.errors.length
    const thrown: string[] = []
    await act().catch((error: unknown) => thrown.push(String(error)))
    const { status = 0, stream, cut } = this.line.last!
    const errors = [...this.client.errors.slice(before), ...thrown]
    const last = stream?.events.at(-1)
    if (last?.type === 'RUN_ERROR') errors.push(JSON.stringify(last))
    if (cut) return { end: 'cut', errors }
    if (status >= 400) return { end: 'refused', errors }
    return { end: stream?.whole ? 'whole' : 'broken', errors }
  }

  /** The last request in a line: `http run id [its last messages] RUN_STARTED ...`. */
  tell(): string {
    const { url, body, status, stream } = this.line.last!
    const news = (body.messages ?? []).slice(-2).map((one: Told) => `${one.role} ${one.id}`)
    const heard = stream ? shape(stream.events).join(' ') : (status ?? 'nothing')
    return `${this.kind} ${url.split('/').at(-1)} ${body.runId} [${news}] ${heard}`
  }
}
