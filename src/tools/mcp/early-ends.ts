import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import type { RequestId } from '@modelcontextprotocol/sdk/types.js'

/** Bytes of one message of a server; what is longer ends the connection. */
export const longest = 16 * 1024 * 1024
/** Milliseconds for what came last to be read. */
const grace = 100
/** As the SDK says that a connection is no more. */
export const closed = -32_000

/**
 * An answer over HTTP may end, or be cut, before what it is the answer to is answered. The SDK then waits for
 * ever, unless the server said where to go on; here it is told, as if the connection were gone.
 */
export class EarlyEnds {
  readonly #transport: Transport
  /** Requests without an answer; of those, where one can go on elsewhere, and where one has to. */
  readonly #open = new Set<RequestId>()
  readonly #resumable = new Set<RequestId>()
  readonly #ended = new Set<RequestId>()

  constructor(make: (fetch: typeof globalThis.fetch) => Transport) {
    const transport = make((url, init) => this.#fetch(url, init))
    this.#transport = transport
    const send = transport.send.bind(transport)
    transport.send = async (message, options) => {
      const id = 'method' in message && 'id' in message ? message.id : undefined
      if (id === undefined) return await send(message, options)
      this.#open.add(id)
      const onresumptiontoken = () => void this.#resumable.add(id)
      await send(message, { ...options, onresumptiontoken }).catch((error: unknown) => {
        this.#forget(id)
        throw error
      })
    }
    // The SDK's client calls these before its own.
    transport.onmessage = (message) => {
      if (!('method' in message) && message.id !== undefined) this.#forget(message.id)
    }
    transport.onerror = ({ message }) => {
      if (message.startsWith('Maximum reconnection attempts')) this.#giveUp(this.#ended)
    }
  }

  get transport(): Transport {
    return this.#transport
  }

  /** Answers to what we send are bounded; the stream of what a server tells by itself has no end. */
  async #fetch(url: string | URL | Request, init?: RequestInit): Promise<Response> {
    const response = await fetch(url, init)
    if (!response.body || init?.method !== 'POST') return response
    const { id } = JSON.parse(String(init.body)) as { id?: RequestId }
    const over = () => {
      if (id === undefined || !this.#open.has(id)) return
      this.#ended.add(id)
      setTimeout(() => this.#resumable.has(id) || this.#giveUp([id]), grace)
    }
    const { status, statusText, headers } = response
    return new Response(bounded(response.body, over), { status, statusText, headers })
  }

  #giveUp(ids: Iterable<RequestId>): void {
    const error = { code: closed, message: 'The answer ended early.' }
    for (const id of [...ids].filter((one) => this.#open.has(one)))
      this.#transport.onmessage?.({ jsonrpc: '2.0', id, error })
  }

  #forget(id: RequestId): void {
    for (const ids of [this.#open, this.#resumable, this.#ended]) ids.delete(id)
  }
}

/** The same body; `over` is called at its end, whatever ends it. */
function bounded(body: ReadableStream<Uint8Array>, over: () => void): ReadableStream<Uint8Array> {
  const reader = body.getReader()
  let left = longest
  return new ReadableStream({
    async pull(out) {
      try {
        const { done, value } = await reader.read()
        left -= value?.byteLength ?? 0
        if (left < 0) throw new Error(`The answer is longer than ${longest} bytes.`)
        if (!done) return out.enqueue(value)
        out.close()
      } catch (error) {
        out.error(error)
        reader.cancel(error).catch(() => {})
      }
      over()
    },
    cancel: (reason) => reader.cancel(reason),
  })
}
