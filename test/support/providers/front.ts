import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { LLMock } from '@copilotkit/aimock'
import { problemWith } from './validate.ts'
import { type Json, type Wire, type WireName, wires } from './wires.ts'

/** What a provider of ours does when it is asked, in order. */
export type Step =
  | { text: string }
  | { call: { id: string; name: string; pieces: readonly string[] } }
  /** A call whose input is not finished. */
  | { begin: { id: string; name: string; pieces: readonly string[] } }
  | { raw: string }
  | { refuse: number; message?: string; type?: string; headers?: Record<string, string> }
  /** The connection breaks; the body ends as if all were well; nothing more ever comes. */
  | 'cut'
  | 'close'
  | 'hang'

export type Script = (asked: string, body: Json, wire: WireName) => readonly Step[] | undefined

export interface Front {
  url: string
  mock: LLMock
  /** Every request, as it came. */
  requests: { wire: WireName; body: Json; headers: IncomingMessage['headers'] }[]
  /** What was wrong with requests, by the rules of their provider. */
  problems: string[]
  /** Plays instead of the mock where it gives steps. */
  script: Script
  /** Connections that were closed by the other side before the answer was whole. */
  left: number
  stop(): Promise<void>
}

/**
 * Three providers on one port: each request is judged by its provider's rules, then answered by a
 * script of ours, or by the mock.
 */
export async function startFront(): Promise<Front> {
  const mock = new LLMock({ port: 0, chunkSize: 8 })
  await mock.start()
  const front: Front = {
    url: '',
    mock,
    requests: [],
    problems: [],
    script: () => undefined,
    left: 0,
    async stop() {
      server.close()
      server.closeAllConnections()
      await mock.stop()
    },
  }
  const server = createServer((request, response) => {
    answer(front, request, response).catch((error: unknown) => {
      response.destroy(error as Error)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  front.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return front
}

async function answer(front: Front, request: IncomingMessage, response: ServerResponse) {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  const text = Buffer.concat(chunks).toString()
  const path = request.url ?? ''
  const found = Object.entries(wires).find(([, one]) => one.matches(path.split('?')[0]!))
  if (!found) return response.writeHead(404).end('{}')
  const [name, wire] = found as [WireName, Wire]
  const body: Json = JSON.parse(text)
  front.requests.push({ wire: name, body, headers: request.headers })
  const problem = problemWith(name, body)
  if (problem !== undefined) {
    front.problems.push(`${name}: ${problem}`)
    return response.writeHead(400, json).end(JSON.stringify(wire.error(400, problem)))
  }
  const steps = front.script(wire.asked(body), body, name)
  if (steps) return await play(front, wire, steps, response)
  const answer = await fetch(front.mock.url + path, {
    method: 'POST',
    headers: { ...json, authorization: 'Bearer k' },
    body: text,
  })
  const headers = Object.fromEntries(
    [...answer.headers].filter(
      ([key]) => !/^(transfer-encoding|connection|content-length)$/.test(key),
    ),
  )
  response.writeHead(answer.status, headers)
  try {
    for await (const chunk of answer.body ?? []) response.write(chunk)
    response.end()
  } catch {
    response.destroy() // the mock cut it: so do we
  }
}

const json = { 'content-type': 'application/json' }

async function play(front: Front, wire: Wire, steps: readonly Step[], response: ServerResponse) {
  const [first] = steps
  if (typeof first === 'object' && 'refuse' in first) {
    const { refuse, message = 'no', type, headers } = first
    response.writeHead(refuse, { ...json, ...headers })
    return response.end(JSON.stringify(wire.error(refuse, message, type)))
  }
  let whole = false
  response.on('close', () => {
    if (!whole) front.left++
  })
  if (first === 'hang') return
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const write = (text: string) =>
    new Promise<void>((resolve) => {
      if (response.destroyed || response.write(text)) return resolve()
      const go = () => {
        response.off('drain', go)
        response.off('close', go)
        resolve()
      }
      response.once('drain', go)
      response.once('close', go)
    })
  await write(wire.begin())
  let calls = false
  for (const step of steps) {
    if (step === 'hang') return
    if (step === 'cut' || step === 'close') {
      await new Promise((resolve) => setTimeout(resolve, 20)) // let what was written arrive
      whole = true
      return step === 'cut' ? response.destroy() : response.end()
    }
    if ('text' in step) await write(wire.text(step.text))
    if ('raw' in step) await write(step.raw)
    if ('begin' in step) await write(wire.half(step.begin.id, step.begin.name, step.begin.pieces))
    if ('call' in step) {
      calls = true
      for (const piece of wire.call(step.call.id, step.call.name, step.call.pieces))
        if (!response.destroyed) await write(piece)
    }
  }
  whole = !response.destroyed
  response.end(wire.end(calls))
}
