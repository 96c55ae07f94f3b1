import { accepted, type Reach } from '../reach.ts'
import { wrong } from '../scribe.ts'

/** Bytes of one response, and of one event. */
const mostBytes = 256 * 1024 * 1024
const longest = 10 * 1024 * 1024

/**
 * A `fetch` for AG-UI's client. Its reader must never see a body fail: it would throw that where nobody
 * can catch it. So a body that is cut simply ends here, and `failure` says why.
 */
export class Transport {
  failure: unknown
  readonly #fetch: Reach['fetch']
  readonly #secrets: readonly string[]
  /** Resolves when more can be taken. */
  room: () => Promise<void> = async () => {}

  /** `secrets`: texts that its errors do not repeat. */
  constructor(fetch: Reach['fetch'], secrets: readonly string[]) {
    this.#fetch = fetch
    this.#secrets = secrets
  }

  readonly fetch = async (url: string, init: RequestInit): Promise<Response> => {
    const response = await accepted(await this.#fetch(url, init), this.#secrets)
    const type = response.headers.get('content-type') ?? ''
    if (!/^text\/event-stream\b/i.test(type)) {
      await response.body?.cancel().catch(() => {})
      throw wrong(`its answer is ${type || 'of no content type'} and not text/event-stream`)
    }
    const headers = { 'content-type': 'text/event-stream' }
    return new Response(this.#safe(response.body!), { headers })
  }

  #safe(body: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
    const reader = body.getReader()
    const decoder = new TextDecoder('utf-8', { fatal: true })
    let size = 0
    const next = async (): Promise<Uint8Array | undefined> => {
      const { done, value } = await reader.read()
      try {
        decoder.decode(value, { stream: !done })
      } catch {
        throw wrong('it is not valid UTF-8')
      }
      if (done) return undefined
      size += value.length
      if (size > mostBytes) throw wrong(`over ${mostBytes} bytes in one answer`)
      return value
    }
    return new ReadableStream<Uint8Array>(
      {
        pull: async (out) => {
          await this.room()
          const held: Uint8Array[] = []
          let waiting = 0
          try {
            // Whole events at once: the client looks through all that it holds for every piece it gets.
            for (;;) {
              const chunk = await next()
              if (!chunk) break
              held.push(chunk)
              waiting += chunk.length
              if (endsEvent(held)) return out.enqueue(Buffer.concat(held))
              if (waiting > longest) throw wrong(`an event of over ${longest} bytes`)
            }
            if (waiting > 0) out.enqueue(Buffer.concat(held))
          } catch (error) {
            this.failure ??= error
            await reader.cancel().catch(() => {})
          }
          out.close()
        },
        cancel: async () => {
          await reader.cancel().catch(() => {})
        },
      },
      { highWaterMark: 0 },
    )
  }
}

/** Whether the last of these chunks has the end of an event in it. */
function endsEvent(chunks: readonly Uint8Array[]): boolean {
  const last = chunks.at(-1)!
  const before = chunks.at(-2)
  if (before?.at(-1) === newline && last[0] === newline) return true
  return Buffer.from(last.buffer, last.byteOffset, last.length).includes('\n\n')
}

const newline = 10
