import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'
import type { Frame } from '../support/chats.ts'
import type { Served } from '../support/serve.ts'

/** A request that came to a remote under test. */
export interface Asked {
  method: string
  path: string
  headers: IncomingMessage['headers']
  // biome-ignore lint/suspicious/noExplicitAny: the wire's JSON, looked into by assertions
  body: any
}

export interface Remote {
  url: string
  port: number
  asked: Asked[]
  /** Connections that their client closed before the answer was whole. */
  left: number
  close(): Promise<void>
}

/** A server that answers as it is told, over real HTTP. */
export async function remote(
  answer: (asked: Asked, response: ServerResponse) => void | Promise<void>,
  port = 0,
): Promise<Remote> {
  const asked: Asked[] = []
  let left = 0
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const text = Buffer.concat(chunks).toString()
      const { method = '', url: path = '', headers } = request
      const one = { method, path, headers, body: text === '' ? undefined : JSON.parse(text) }
      asked.push(one)
      response.on('close', () => {
        if (!response.writableFinished) left++
      })
      response.on('error', () => {})
      Promise.resolve(answer(one, response)).catch(() => response.destroy())
    })
  })
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  const close = async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
  onTestFinished(close)
  const { port: taken } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${taken}`,
    port: taken,
    asked,
    get left() {
      return left
    },
    close,
  }
}

/** Events of AG-UI, as a server sends them. */
export function sse(response: ServerResponse, events: readonly object[], end = true): void {
  if (!response.headersSent) response.writeHead(200, { 'content-type': 'text/event-stream' })
  for (const event of events) response.write(`data: ${JSON.stringify(event)}\n\n`)
  if (end) response.end()
}

export const started = { type: 'RUN_STARTED', threadId: 't', runId: 'r' }
export const finished = { type: 'RUN_FINISHED', threadId: 't', runId: 'r' }
export const textEvents = (id: string, ...pieces: string[]) => [
  { type: 'TEXT_MESSAGE_START', messageId: id, role: 'assistant' },
  ...pieces.map((delta) => ({ type: 'TEXT_MESSAGE_CONTENT', messageId: id, delta })),
  { type: 'TEXT_MESSAGE_END', messageId: id },
]
export const callEvents = (id: string, name: string, input: object) => [
  { type: 'TOOL_CALL_START', toolCallId: id, toolCallName: name },
  { type: 'TOOL_CALL_ARGS', toolCallId: id, delta: JSON.stringify(input) },
  { type: 'TOOL_CALL_END', toolCallId: id },
]
export const interrupted = (...interrupts: object[]) => ({
  ...finished,
  outcome: { type: 'interrupt', interrupts },
})

/** An AG-UI agent that asks whether it may, and what it was answered; `null`: it was not yet. */
export const asksOnce = () =>
  remote(({ body }, response) =>
    sse(
      response,
      body.resume
        ? [started, ...textEvents('m2', 'Done.'), finished]
        : [
            started,
            ...textEvents('m1', 'I ask.'),
            interrupted({ id: 'i1', reason: 'confirmation', message: 'Sure?' }),
          ],
    ),
  )
export const answersTo = ({ asked }: Remote) => asked.map(({ body }) => body.resume ?? null)
export const approvedOnce = [
  null,
  [{ interruptId: 'i1', status: 'resolved', payload: { approved: true } }],
]

export const answerOf = (frames: readonly Frame[]) =>
  frames.findLast(({ event }) => event === 'answer')?.data.answer

/** Says something and reads to the end. */
export async function ask(server: Served, chat: string, text: string): Promise<Frame[]> {
  return await (await server.start(chat, text)).rest()
}

export const interactionOf = (response: Response) => response.headers.get('x-interaction-id')!
