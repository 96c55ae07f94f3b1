import { once } from 'node:events'
import { Agent, type IncomingMessage, request } from 'node:http'
import { words } from './source.mjs'

/** A thread as a client has it: like the real ones it sends all its messages with every run. */
export interface Chat {
  /** Says it and reads the answer to its end. */
  say(content: string): Promise<Heard>
  /** Takes the answer into the list; throws unless all its text is there and it ended well. Gives
   *  in how many pieces the text came: over GraphQL a server may join deltas, over AG-UI not. */
  heard(chunks: readonly Buffer[], answer: Answer): Promise<number>
}

export interface Heard {
  /** Milliseconds to the first delta. */
  first: number
  chunks: Buffer[]
}

/** Messages of an answer, and deltas of each message. */
export interface Answer {
  messages: number
  deltas: number
}

const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY })

/** Connections that were idle for long may be closed by the server just when they are used. */
export const hangUp = (): void => agent.destroy()

export async function post(
  url: string,
  input: unknown,
  accepts: Record<string, string>,
): Promise<IncomingMessage> {
  const body = Buffer.from(JSON.stringify(input))
  const headers = { 'content-type': 'application/json', ...accepts, 'content-length': body.length }
  const sent = request(url, { method: 'POST', agent, headers })
  sent.end(body)
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  if (response.statusCode !== 200) throw new Error(`${url}: ${response.statusCode}`)
  return response
}

/** Asks and reads all; what contains `mark` brings the first delta. */
export async function hear(ask: () => Promise<IncomingMessage>, mark: string): Promise<Heard> {
  const since = performance.now()
  const chunks: Buffer[] = []
  let first = 0
  for await (const chunk of (await ask()) as AsyncIterable<Buffer>) {
    if (first === 0 && chunk.includes(mark)) first = performance.now() - since
    chunks.push(chunk)
  }
  return { first, chunks }
}

const texts = new Map<number, string>()

/** All the words of a message. */
export async function textOf(deltas: number): Promise<string> {
  let text = texts.get(deltas) ?? ''
  if (text === '') for await (const word of words(deltas, deltas)) text += word.text
  texts.set(deltas, text)
  return text
}
