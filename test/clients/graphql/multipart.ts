/** A payload of an incremental result, as it came over the wire. */
export interface Payload {
  // biome-ignore lint/suspicious/noExplicitAny: the wire's JSON, looked into by judges and assertions
  data?: any
  incremental?: Entry[]
  errors?: unknown[]
  hasNext?: boolean
}

export interface Entry {
  path: (string | number)[]
  items?: unknown[]
  // biome-ignore lint/suspicious/noExplicitAny: the wire's JSON, looked into by judges and assertions
  data?: any
  errors?: unknown[]
}

/** Reads bytes as they come; what is wrong with them is kept as sentences. */
export interface Decoder {
  payloads: Payload[]
  wrong: string[]
  push(chunk: Uint8Array): void
  /** The bytes ended by themselves. */
  end(): void
}

const delimiter = Buffer.from('\r\n---')
const tail = Buffer.from('--\r\n')
const head = /^\r\nContent-Type: application\/json; charset=utf-8\r\nContent-Length: (\d+)$/

/**
 * `multipart/mixed; boundary="-"` by the letter of the contract (4.1), written without a look at
 * any server or client: CRLF only, lengths in bytes, each part given away with what closes it.
 */
export function multipart(): Decoder {
  const payloads: Payload[] = []
  const wrong: string[] = []
  let rest: Buffer = Buffer.alloc(0)
  let opened = false
  let closed = false

  function open(): boolean {
    if (opened || rest.length < delimiter.length) return opened
    opened = true
    if (!starts(delimiter)) wrong.push(`does not open with a delimiter: ${show(rest)}`)
    rest = rest.subarray(delimiter.length)
    return true
  }

  /** One part and the delimiter after it; false when more bytes are needed. */
  function part(): boolean {
    const blank = rest.indexOf('\r\n\r\n')
    if (blank < 0) return false
    const found = head.exec(rest.subarray(0, blank).toString('latin1'))
    if (!found) {
      wrong.push(`a part does not begin with its two headers: ${show(rest)}`)
      rest = Buffer.alloc(0)
      return false
    }
    const start = blank + 4
    const end = start + Number(found[1])
    if (rest.length < end) return false
    // A part alone would be shown only when the next one comes.
    if (rest.length === end) wrong.push('a part was sent without the delimiter that closes it')
    if (rest.length < end + delimiter.length) return false
    const text = rest.subarray(start, end).toString('utf8')
    rest = rest.subarray(end)
    if (!starts(delimiter)) wrong.push(`after Content-Length comes no delimiter: ${show(rest)}`)
    rest = rest.subarray(delimiter.length)
    if (/[\r\n]/.test(text)) wrong.push('the JSON of a part has line breaks')
    read(text)
    return true
  }

  function read(text: string): void {
    try {
      payloads.push(JSON.parse(text))
    } catch {
      wrong.push(`a part is no JSON: ${text.slice(0, 80)}`)
    }
  }

  const starts = (bytes: Buffer) => rest.subarray(0, bytes.length).equals(bytes)
  const last = () => payloads.at(-1)?.hasNext === false

  return {
    payloads,
    wrong,
    push(chunk) {
      rest = Buffer.concat([rest, chunk])
      if (closed) wrong.push(`something comes after the end: ${show(rest)}`)
      if (!open()) return
      while (!last() && part());
      if (!last() || rest.length < tail.length) return
      closed = rest.equals(tail)
      if (!closed) wrong.push(`after hasNext:false comes not just its end: ${show(rest)}`)
    },
    end() {
      if (!last()) wrong.push('ends without hasNext:false')
      else if (!closed) wrong.push('ends without closing the last delimiter')
    },
  }
}

/** The same payloads as `text/event-stream`. */
export function eventStream(): Decoder {
  const payloads: Payload[] = []
  const wrong: string[] = []
  const decoder = new TextDecoder()
  let text = ''
  return {
    payloads,
    wrong,
    push(chunk) {
      text += decoder.decode(chunk, { stream: true })
      for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
        const lines = text.slice(0, end).split('\n')
        text = text.slice(end + 2)
        const event = lines
          .find((line) => line.startsWith('event:'))
          ?.slice(6)
          .trim()
        const data = lines
          .find((line) => line.startsWith('data:'))
          ?.slice(5)
          .trim()
        if (event === 'complete' || !data) continue
        if (event !== undefined && event !== 'next') wrong.push(`an event called ${event}`)
        payloads.push(JSON.parse(data))
      }
    },
    end() {
      if (text !== '') wrong.push(`ends inside of an event: ${text.slice(0, 80)}`)
      if (payloads.at(-1)?.hasNext !== false) wrong.push('ends without hasNext:false')
    },
  }
}

const show = (bytes: Buffer) => JSON.stringify(bytes.subarray(0, 60).toString('latin1'))
