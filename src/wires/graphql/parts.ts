import type { LongTexts } from './long-texts.ts'

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
  /** Whether the header of a part contains its length. */
  hasLength: boolean
  /** The text before the JSON of a part that has `bytes` bytes. */
  before(bytes: number): string
  after: string
  end: string
}

/** A part of a response as text. */
export const partText = ({ before, after }: Framing, json: string): string =>
  before(Buffer.byteLength(json)) + json + after

/**
 * A part of a response as one text, or as several if it contains long texts. The long texts are made at the reader's pace
 * and not kept. If the header needs the length, they are also made once before, to count their bytes.
 */
export async function* partTexts(
  framing: Framing,
  json: string,
  long: LongTexts,
): AsyncGenerator<string, void, undefined> {
  if (!long.isIn(json)) return yield partText(framing, json)
  yield framing.before(framing.hasLength ? await long.byteLength(json) : 0)
  yield* long.filled(json)
  yield framing.after
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
  hasLength: true,
  before: (bytes) =>
    `\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: ${bytes}\r\n\r\n`,
  after: '\r\n---',
  end: '--\r\n',
}

const events: Framing = {
  headers: headersOf('text/event-stream; charset=utf-8'),
  start: '',
  hasLength: false,
  before: () => 'event: next\ndata: ',
  after: '\n\n',
  end: 'event: complete\ndata:\n\n',
}

/** A response that is made as it is read: whoever does not read is not sent anything. */
export function inParts(
  parts: AsyncIterable<object>,
  manner: Exclude<Manner, 'whole'>,
  long: LongTexts,
): Response {
  const framing = manner === 'multipart' ? multipart : events
  const { headers, start, end } = framing
  const iterator = parts[Symbol.asyncIterator]()
  let before = start
  /** The rest of a part with long texts. */
  let rest: AsyncGenerator<string, void, undefined> | undefined
  let last = false
  async function next(): Promise<string> {
    if (rest) {
      const { done, value } = await rest.next()
      if (!done) return value
      rest = undefined
      return last ? end : ''
    }
    const { done, value } = await iterator.next()
    last = done || !(value as { hasNext?: boolean }).hasNext
    const json = done ? '' : JSON.stringify(value)
    const first = before
    before = ''
    if (!long.isIn(json)) return first + (done ? '' : partText(framing, json)) + (last ? end : '')
    rest = partTexts(framing, json, long)
    return first
  }
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(out) {
        let text = ''
        while (text === '') text = await next()
        out.enqueue(Buffer.from(text))
        if (rest || !last) return
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
