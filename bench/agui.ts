import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { type Answer, type Chat, type Heard, hear, post, textOf } from './chat.ts'

interface Said {
  id: string
  role: 'user' | 'assistant'
  content: string
}

export class AguiChat implements Chat {
  readonly threadId = randomUUID()
  readonly messages: Said[] = []
  readonly #url: string

  constructor(server: { url: string }) {
    this.#url = `${server.url}/copilotkit/agent/default/run`
  }

  async say(content: string): Promise<Heard> {
    return await hear(() => this.post(content), delta)
  }

  async post(content: string): Promise<IncomingMessage> {
    this.messages.push({ id: randomUUID(), role: 'user', content })
    const { threadId, messages } = this
    const input = { threadId, runId: randomUUID(), messages, tools: [], context: [] }
    const accepts = { accept: 'text/event-stream' }
    return await post(this.#url, { ...input, state: {}, forwardedProps: {} }, accepts)
  }

  async heard(chunks: readonly Buffer[], { messages, deltas }: Answer): Promise<number> {
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
    return told.length
  }
}

export const delta = '"TEXT_MESSAGE_CONTENT"'

function eventsOf(text: string) {
  const lines = text.split('\n').filter((line) => line.startsWith('data: '))
  return lines.map(
    (line) => JSON.parse(line.slice(6)) as { type: string; messageId?: string; delta?: string },
  )
}
