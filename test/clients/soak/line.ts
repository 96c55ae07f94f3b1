import { setTimeout as sleep } from 'node:timers/promises'
import type { Fetch, Recorded } from '../judge.ts'

/** How a connection ends before its time: after milliseconds without an answer, or after chunks. */
export type Cut = { after: number } | { chunks: number }

/** What became of the last request. */
export interface Call {
  url: string
  // biome-ignore lint/suspicious/noExplicitAny: the request's JSON
  body: any
  status?: number
  stream?: Recorded
  /** It was us who hung up. */
  cut: boolean
}

/** The connection of one client, with a hand on the plug. */
export class Line {
  readonly #cutNext: () => Cut | undefined
  readonly #fetch: Fetch
  readonly #streams: readonly Recorded[]
  last: Call | undefined

  constructor(fetch: Fetch, streams: readonly Recorded[], cutNext: () => Cut | undefined) {
    this.#fetch = fetch
    this.#streams = streams
    this.#cutNext = cutNext
  }

  /** For the client's `fetch`. */
  readonly fetch: Fetch = async (url, init = {}) => {
    const body = typeof init.body === 'string' ? JSON.parse(init.body) : undefined
    const call: Call = { url: String(url), body, cut: false }
    this.last = call
    const cut = this.#cutNext()
    const plug = new AbortController()
    let pull = () => {
      call.cut = true
      plug.abort()
    }
    const signal = init.signal ? AbortSignal.any([init.signal, plug.signal]) : plug.signal
    if (cut && 'after' in cut) void sleep(cut.after).then(() => pull())
    const before = this.#streams.length
    const answer = await this.#fetch(url, { ...init, signal })
    call.status = answer.status
    call.stream = this.#streams.slice(before).find((stream) => stream.request.runId === body.runId)
    if (!(cut && answer.body)) return answer
    // From here on it breaks as a socket does: an abort after the last byte is heard by nobody.
    let left = 'chunks' in cut ? cut.chunks : Number.POSITIVE_INFINITY
    const broken = new TransformStream<Uint8Array, Uint8Array>({
      start(out) {
        pull = () => {
          call.cut = true
          out.error(new TypeError('terminated'))
        }
      },
      transform(chunk, out) {
        out.enqueue(chunk)
        if (--left === 0) pull()
      },
      flush() {
        pull = () => {}
      },
    })
    return new Response(answer.body.pipeThrough(broken), answer)
  }
}
