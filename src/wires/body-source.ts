import type { IncomingMessage } from 'node:http'

/** A request as Node received it, and how many bytes its connection had brought when its body began. */
interface Source {
  incoming: IncomingMessage
  bytesBefore: number
}

const sources = new WeakMap<Request, Source>()

/** Records the Node request that a web request was made from. */
export function setBodySource(request: Request, incoming: IncomingMessage): void {
  sources.set(request, { incoming, bytesBefore: incoming.socket.bytesRead })
}

export interface BodySource {
  chunks: AsyncIterable<Uint8Array>
  /** Bytes that the connection brought for the body so far, with the frames of its chunks. 0 if that is not known. */
  received(): number
}

/**
 * The body of a request. Reads the Node stream where there is one: it joins the chunks that arrived together, while a
 * web stream queues each of them and takes quadratic time to read a long queue. Leaves the stream open when
 * the reader stops early, because the response goes over the same connection.
 */
export function bodySource(request: Request): BodySource {
  const source = sources.get(request)
  if (!source)
    return { chunks: (request.body ?? []) as AsyncIterable<Uint8Array>, received: () => 0 }
  const { incoming, bytesBefore } = source
  return {
    chunks: incoming.iterator({ destroyOnReturn: false }),
    received: () => incoming.socket.bytesRead - bytesBefore,
  }
}
