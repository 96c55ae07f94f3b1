import { AsyncLocalStorage } from 'node:async_hooks'
import { afterEach, expect } from 'vitest'
import { type Decoder, eventStream, multipart } from './multipart.ts'
import { codes, type Told, tell } from './telling.ts'

/** One answer of the wire, as it was read by whoever asked for it. */
export interface Answer {
  url: string
  // biome-ignore lint/suspicious/noExplicitAny: the request's JSON, looked into by assertions
  request: any
  asked: Headers
  response: Response
  /** Of an answer that comes in parts. */
  stream: Decoder | undefined
  /** Of an answer that is one JSON text. */
  // biome-ignore lint/suspicious/noExplicitAny: the wire's JSON, looked into by assertions
  json: any
  /** What its parts say, as far as it was read. */
  told(): Told
}

const listening = new AsyncLocalStorage<Answer[]>()
const heard: Answer[] = []

/** Keeps the answers to all that `ask` asks for. */
export const listen = <T>(answers: Answer[], ask: () => T): T => listening.run(answers, ask)

// Every answer of every test is judged, whoever read it.
afterEach(() => {
  for (const answer of heard.splice(0)) expect(problems(answer), answer.url).toEqual([])
})

// The client takes the fetch of the world; this one listens. Answers of other wires pass unheard.
const { fetch: plain } = globalThis
globalThis.fetch = async (url, init) => {
  const answer = await plain(url, init)
  const request = readRequest(init)
  if (request === undefined) return answer
  const type = answer.headers.get('content-type') ?? ''
  const decoder = type.startsWith('multipart/mixed')
    ? multipart()
    : type.startsWith('text/event-stream')
      ? eventStream()
      : undefined
  const found: Answer = {
    ...{ url: String(url), request, asked: new Headers(init?.headers), response: answer },
    ...{ stream: decoder, json: undefined, told: () => tell(decoder?.payloads ?? []) },
  }
  heard.push(found)
  listening.getStore()?.push(found)
  if (!answer.body) return answer
  const { status, headers } = answer
  const ear = decoder ? hearing(decoder) : reading(found)
  return new Response(answer.body.pipeThrough(ear), { status, headers })
}

function readRequest(init: RequestInit | undefined): { query: string } | undefined {
  if (init?.method !== 'POST' || typeof init.body !== 'string') return undefined
  try {
    const body = JSON.parse(init.body)
    return typeof body?.query === 'string' ? body : undefined
  } catch {
    return undefined
  }
}

/** Not a tee: when the reader leaves, the connection is closed. */
function hearing(decoder: Decoder): TransformStream<Uint8Array, Uint8Array> {
  return new TransformStream({
    transform(chunk, out) {
      decoder.push(chunk)
      out.enqueue(chunk)
    },
    flush: () => decoder.end(),
  })
}

function reading(found: Answer): TransformStream<Uint8Array, Uint8Array> {
  const chunks: Uint8Array[] = []
  return new TransformStream({
    transform(chunk, out) {
      chunks.push(chunk)
      out.enqueue(chunk)
    },
    flush() {
      const text = Buffer.concat(chunks).toString('utf8')
      const type = found.response.headers.get('content-type') ?? ''
      found.json = /json/.test(type) ? JSON.parse(text) : undefined
    },
  })
}

/** What is wrong with an answer, one sentence each. */
export function problems(answer: Answer): string[] {
  const { asked, response, stream, json, request } = answer
  const version = asked.get('x-copilotkit-runtime-client-gql-version')
  const told = response.headers.get('x-copilotkit-runtime-version')
  const wrong = [...(stream?.wrong ?? [])]
  if (told !== version) wrong.push(`says version ${told} to a client of ${version}`)
  if (leaks(stream?.payloads ?? json)) wrong.push('tells of our stack')
  if (stream && isOfTheClient(request)) wrong.push(...answer.told().wrong)
  if (response.status === 200 && isOfTheClient(request))
    for (const { message, extensions = {} } of (json?.errors ?? []) as GraphqlError[])
      if (extensions.code !== undefined && !codes.has(extensions.code))
        wrong.push(`${message} has the code ${extensions.code}`)
  return wrong
}

interface GraphqlError {
  message: string
  extensions?: { code?: string }
}

const operations = /\b(generateCopilotResponse|loadAgentState|availableAgents)\b/

/** Its documents, not those of somebody who tries what else can be asked. */
const isOfTheClient = ({ query }: { query: string }): boolean =>
  operations.test(query) &&
  (/messages @stream\b/.test(query) || !query.includes('generateCopilotResponse'))

const leaks = (value: unknown): boolean =>
  /"stack":|\\n\s+at .+:\d+:\d+/.test(JSON.stringify(value) ?? '')
