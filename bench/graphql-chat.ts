import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { type Answer, type Chat, type Heard, hear, post, textOf } from './chat.ts'

/** What the real client sends, taken from it: its headers, its document, its variables. */
export interface RealRequest {
  headers: Record<string, string>
  body: { variables: { data: object } }
}

interface Said {
  id: string
  createdAt: string
  textMessage: { role: 'user' | 'assistant'; content: string }
}

export class GraphqlChat implements Chat {
  readonly threadId = randomUUID()
  readonly messages: Said[] = []
  readonly #url: string
  readonly #real: RealRequest

  constructor(server: { url: string }, real: RealRequest) {
    this.#url = `${server.url}/copilotkit`
    this.#real = real
  }

  async say(content: string): Promise<Heard> {
    return await hear(() => this.post(content), '"content",')
  }

  async post(content: string): Promise<IncomingMessage> {
    this.messages.push(said(randomUUID(), 'user', content))
    const { threadId, messages } = this
    const { headers, body } = this.#real
    const data = { ...body.variables.data, messages, threadId }
    const variables = { ...body.variables, data }
    return await post(this.#url, { ...body, variables }, headers)
  }

  async heard(chunks: readonly Buffer[], answer: Answer): Promise<number> {
    const response = responseOf(partsOf(chunks))
    const text = await textOf(answer.deltas)
    const whole = response.messages.every(
      ({ content, status }) => content.join('') === text && status?.code === 'Success',
    )
    const { length } = response.messages
    if (length !== answer.messages || !whole || response.status?.code !== 'Success')
      throw new Error(
        `${length} of ${answer.messages} messages came, ${whole ? 'whole' : 'not whole'}, and ` +
          `${response.status?.code} at the end`,
      )
    for (const { id, content } of response.messages)
      this.messages.push(said(id, 'assistant', content.join('')))
    return response.messages.reduce((sum, { content }) => sum + content.length, 0)
  }
}

const said = (id: string, role: 'user' | 'assistant', content: string): Said => ({
  ...{ id, createdAt: new Date().toISOString() },
  textMessage: { role, content },
})

/** A part of the response: the first has `data`, those after it say what comes where. */
interface Part {
  data?: { generateCopilotResponse: Told }
  incremental?: ({ path: (string | number)[] } & ({ items: unknown[] } | { data: object }))[]
  errors?: unknown
  hasNext: boolean
}

interface Told {
  messages: { id: string; content: string[]; status?: { code: string } }[]
  status?: { code: string }
}

/** Throws unless the response is whole: framed as it has to be, and closed after its last part. */
export function partsOf(chunks: readonly Buffer[]): Part[] {
  const pieces = Buffer.concat(chunks).toString().split('\r\n---')
  const [preamble, closing] = [pieces.shift(), pieces.pop()]
  const parts = pieces.map((piece) => {
    const [head, json] = piece.split('\r\n\r\n') as [string, string]
    const length = /content-length: (\d+)/i.exec(head)?.[1]
    if (length !== undefined && Number(length) !== Buffer.byteLength(json))
      throw new Error(`a part of ${Buffer.byteLength(json)} bytes says that it has ${length}`)
    return JSON.parse(json) as Part
  })
  if (preamble !== '' || closing?.trimEnd() !== '--' || parts.at(-1)?.hasNext !== false)
    throw new Error(`not a whole response: ${pieces.at(-1)}${closing}`)
  return parts
}

/** What the parts make together. */
export function responseOf(parts: readonly Part[]): Told {
  const whole = parts[0]!.data!
  for (const { errors, incremental = [] } of parts) {
    if (errors) throw new Error(`the response has errors: ${JSON.stringify(errors)}`)
    for (const { path, ...patch } of incremental) {
      if ('errors' in patch) throw new Error(`a patch has errors: ${JSON.stringify(patch)}`)
      if ('data' in patch) Object.assign(at(whole, path) as object, patch.data)
      else put(at(whole, path.slice(0, -1)) as unknown[], Number(path.at(-1)), patch.items)
    }
  }
  return whole.generateCopilotResponse
}

/** Lists grow from their end, without gaps. */
function put(list: unknown[], index: number, items: unknown[]): void {
  if (list.length !== index) throw new Error(`an item came at ${index} after ${list.length} others`)
  list.push(...items)
}

const at = (from: unknown, path: readonly (string | number)[]) =>
  path.reduce((value, key) => (value as Record<string, unknown>)[key], from)
