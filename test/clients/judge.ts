import { createRequire } from 'node:module'
import { enforceEvents, verifyEvents } from '@ag-ui/client'
import { EventSchemas } from '@ag-ui/core/schemas'
import { from, lastValueFrom, toArray } from 'rxjs'
import { afterEach, expect } from 'vitest'

/** An event as it came over the wire. */
// biome-ignore lint/suspicious/noExplicitAny: the wire's JSON, looked into by assertions
export type Event = { type: string } & Record<string, any>

/** One answer with a stream of events, as it was read by whoever asked for it. */
export interface Recorded {
  url: string
  // biome-ignore lint/suspicious/noExplicitAny: the request's JSON, looked into by assertions
  request: any
  response: Response
  events: Event[]
  /** Came to its end by itself, not by a reader that left or a server that died. */
  whole: boolean
}

interface Dialect {
  name: string
  parse(event: unknown): unknown
  verify: typeof verifyEvents
}

// The older dialect is not ours to import: it lies below the client that embeds it.
const below = createRequire(createRequire(import.meta.url).resolve('@copilotkit/core'))
const older = below('@ag-ui/client') as {
  EventSchemas: typeof EventSchemas
  verifyEvents: typeof verifyEvents
}

export const dialects: readonly Dialect[] = [
  { name: '1.0.0', parse: (event) => EventSchemas.parse(event), verify: verifyEvents },
  {
    name: '0.0.59',
    parse: (event) => older.EventSchemas.parse(event),
    verify: older.verifyEvents,
  },
]

const heard: Recorded[] = []

// Every stream of every test is judged by both dialects, whoever read it.
afterEach(async () => {
  for (const stream of heard.splice(0)) await judge(stream)
})

export async function judge({ url, request, response, events, whole }: Recorded): Promise<void> {
  if (!response.ok) return
  const modern = String(request?.protocolVersion ?? '').startsWith('1')
  for (const dialect of dialects) {
    const about = `${dialect.name} reads ${url}`
    const told = events.map((event) => (modern ? withoutNews(event) : event))
    const parsed = told.map((event) => dialect.parse(event))
    await lastValueFrom(from(parsed as never[]).pipe(dialect.verify(), toArray())).catch((error) =>
      expect.fail(`${about}: ${error}\n${events.map((event) => JSON.stringify(event)).join('\n')}`),
    )
  }
  // What 1.0 does not know it takes out, with a warning for each.
  const kept = await lastValueFrom(from(events as never[]).pipe(enforceEvents(), toArray()))
  expect(kept, `${url} has fields or events that nobody knows`).toEqual(events)
  if (!whole || events.length === 0) return
  const ends = events.filter(({ type }) => type === 'RUN_FINISHED' || type === 'RUN_ERROR')
  expect(ends, `${url} ends once`).toHaveLength(1)
  expect(events.at(-1), `${url} ends with its end`).toBe(ends[0])
}

/** What only clients of 1.0 are told, and the other dialect could not read. */
function withoutNews(event: Event): Event {
  const { outcome, ...rest } = event
  return outcome?.type === 'cancelled' ? rest : event
}

export type Fetch = (url: string | URL | Request, init?: RequestInit) => Promise<Response>

/** A fetch that keeps what its streams said, and gives them to the judges. */
export function recorder(): { fetch: Fetch; streams: Recorded[] } {
  const streams: Recorded[] = []
  return {
    streams,
    async fetch(url, init) {
      const answer = await globalThis.fetch(url, init)
      const type = answer.headers.get('content-type') ?? ''
      if (!answer.body || !type.startsWith('text/event-stream')) return answer
      const request = typeof init?.body === 'string' ? JSON.parse(init.body) : undefined
      const found: Recorded = {
        ...{ url: String(url), request: request?.body ?? request, response: answer },
        ...{ events: [], whole: false },
      }
      streams.push(found)
      heard.push(found)
      const { status, headers } = answer
      return new Response(answer.body.pipeThrough(listen(found)), { status, headers })
    },
  }
}

/** Not a tee: when the reader leaves, the connection is closed. */
function listen(found: Recorded): TransformStream<Uint8Array, Uint8Array> {
  const decoder = new TextDecoder()
  let text = ''
  return new TransformStream({
    transform(chunk, out) {
      text += decoder.decode(chunk, { stream: true })
      for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
        const data = dataOf(text.slice(0, end))
        text = text.slice(end + 2)
        if (data !== undefined) found.events.push(JSON.parse(data))
      }
      out.enqueue(chunk)
    },
    flush() {
      expect(text, `${found.url} ends between two frames`).toBe('')
      found.whole = true
    },
  })
}

function dataOf(block: string): string | undefined {
  const lines = block.split('\n')
  expect(block, 'frames are divided by \\n\\n only').not.toContain('\r')
  const data = lines.filter((line) => line.startsWith('data:')).map((line) => line.slice(5).trim())
  return data.length === 0 ? undefined : data.join('\n')
}

export const types = (events: readonly Event[]) => events.map(({ type }) => type)

/** The types, with runs of the same delta written once. */
export const shape = (events: readonly Event[]): string[] =>
  types(events).filter((type, i, all) => type !== all[i - 1] || !/CONTENT|ARGS/.test(type))
