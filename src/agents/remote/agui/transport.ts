import { RuntimeError } from '../../../core/errors.ts'
import { accepted, type Reach } from '../reach.ts'
import { wrong } from '../scribe.ts'

/** Bytes of one response. */
const mostBytes = 256 * 1024 * 1024

/**
 * A `fetch` for AG-UI's client. Its reader must never see a body fail: it would throw that where nobody
 * can catch it. So a body that is cut simply ends here, and `failure` says why.
 */
export class Transport {
  failure: unknown
  readonly #fetch: Reach['fetch']
  /** Resolves when more can be taken. */
  room: () => Promise<void> = async () => {}

  constructor(fetch: Reach['fetch']) {
    this.#fetch = fetch
  }

  readonly fetch = async (url: string, init: RequestInit): Promise<Response> => {
    const response = await accepted(await this.#fetch(url, init))
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
    const end = (out: ReadableStreamDefaultController, why?: unknown) => {
      this.failure ??= why
      out.close()
    }
    return new ReadableStream<Uint8Array>(
      {
        pull: async (out) => {
          await this.room()
          let chunk: Uint8Array | undefined
          try {
            const { done, value } = await reader.read()
            if (done) decoder.decode()
            else {
              decoder.decode(value, { stream: true })
              size += value.length
              if (size > mostBytes) throw wrong(`over ${mostBytes} bytes in one answer`)
              chunk = value
            }
          } catch (error) {
            await reader.cancel().catch(() => {})
            const known = error instanceof RuntimeError ? error : undefined
            const broken = error instanceof TypeError ? wrong('it is not valid UTF-8') : error
            return end(out, known ?? broken)
          }
          if (chunk) out.enqueue(chunk)
          else end(out)
        },
        cancel: async () => {
          await reader.cancel().catch(() => {})
        },
      },
      { highWaterMark: 0 },
    )
  }
}
