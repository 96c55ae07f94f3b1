/** How a result is sent: whole, or in parts. */
export type Manner = 'whole' | 'multipart' | 'events'

/** What the client reads: parts as multipart if it can, as a stream of events if it can, else none. */
export function mannerOf(accept: string | null): Manner {
  const ranges = (accept ?? '*/*').toLowerCase().split(',').map(range)
  const takes = (...types: string[]) => ranges.some((one) => types.includes(one))
  if (takes('multipart/mixed', 'multipart/*', '*/*')) return 'multipart'
  return takes('text/event-stream', 'text/*') ? 'events' : 'whole'
}

function range(text: string): string {
  const [type = '', ...parameters] = text.split(';').map((one) => one.trim())
  return parameters.some((one) => /^q=0(\.0*)?$/.test(one)) ? '' : type
}

interface Framing {
  headers: Record<string, string>
  start: string
  part(json: string): string
  end: string
}

const headersOf = (type: string) => ({
  'content-type': type,
  'cache-control': 'no-cache, no-store',
  'x-accel-buffering': 'no',
})

/** A delimiter ends the part before it and leaves with it: clients read no part without. */
export const multipart: Framing = {
  headers: headersOf('multipart/mixed; boundary="-"'),
  start: '\r\n---',
  part: (json) =>
    '\r\nContent-Type: application/json; charset=utf-8\r\n' +
    `Content-Length: ${Buffer.byteLength(json)}\r\n\r\n${json}\r\n---`,
  end: '--\r\n',
}

const events: Framing = {
  headers: headersOf('text/event-stream; charset=utf-8'),
  start: '',
  part: (json) => `event: next\ndata: ${json}\n\n`,
  end: 'event: complete\ndata:\n\n',
}

/** A response that is made as it is read: whoever does not read is not sent anything. */
export function inParts(parts: AsyncIterable<object>, manner: Exclude<Manner, 'whole'>): Response {
  const { headers, start, part, end } = manner === 'multipart' ? multipart : events
  const iterator = parts[Symbol.asyncIterator]()
  let before = start
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(out) {
        const { done, value } = await iterator.next()
        const last = done || !(value as { hasNext?: boolean }).hasNext
        const text = before + (done ? '' : part(JSON.stringify(value))) + (last ? end : '')
        before = ''
        out.enqueue(Buffer.from(text))
        if (!last) return
        out.close()
        await iterator.return?.()
      },
      async cancel() {
        await iterator.return?.()
      },
    },
    { highWaterMark: 0 },
  )
  return new Response(body, { headers })
}
