import { once } from 'node:events'
import { Agent, get, type IncomingMessage } from 'node:http'
import { type Measured, post } from './support.ts'

/** What came of a stream, by the clock of `performance`. */
export interface Heard {
  first: number
  end: number
  pieces: number
}

export interface Reader {
  all: Promise<Heard>
  /** Hangs up; the run goes on. */
  leave(): void
}

export interface Run extends Reader {
  path: string
  /** When it was asked for. */
  since: number
}

let chats = 0
const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY })

/** A run on a chat of its own, begun: its id is known. */
export async function start(server: Measured, message: string): Promise<Run> {
  const chat = `cluster-${++chats}`
  const since = performance.now()
  const response = await post(`${server.url}/chats/${chat}/interactions`, message)
  const named = once(response, 'data')
  const reader = listen(response)
  const [chunk] = (await named) as [Buffer]
  const id = /run_\w+/.exec(chunk.toString())?.[0]
  if (id === undefined) throw new Error(`a run without a name: ${chunk}`)
  return { ...reader, path: `/chats/${chat}/interactions/${id}/events`, since }
}

/** Reads the same run on a server that may be another. */
export async function join(server: Measured, { path }: Run): Promise<Reader> {
  const [response] = (await once(get(`${server.url}${path}`, { agent }), 'response')) as [
    IncomingMessage,
  ]
  if (response.statusCode !== 200) throw new Error(`${path} answered ${response.statusCode}`)
  return listen(response)
}

const mark = 'event: answer_delta'

function listen(response: IncomingMessage): Reader {
  const chunks: Buffer[] = []
  let first = 0
  response.on('data', (chunk: Buffer) => {
    if (first === 0 && chunk.includes(mark)) first = performance.now()
    chunks.push(chunk)
  })
  let left = false
  const all = new Promise<Heard>((resolve, reject) => {
    response.on('error', (error) => left || reject(error))
    response.on('end', () => {
      const end = performance.now()
      const text = Buffer.concat(chunks).toString()
      if (!text.includes('"status":"COMPLETED"')) reject(new Error(`did not complete: ${text}`))
      resolve({ first, end, pieces: text.split(mark).length - 1 })
    })
  })
  return {
    all,
    leave() {
      left = true
      response.destroy()
    },
  }
}
