import type { Told } from './stream.ts'

const mediaType = 'application/vnd.ag-ui.event+proto'

export const wantsProtobuf = (request: Request): boolean =>
  (request.headers.get('accept') ?? '').includes(mediaType)

/** AG-UI's binary encoding: each event with its length before it. Loaded when it is asked for. */
export async function protobuf() {
  const { encode } = await import('@ag-ui/proto')
  const framed = (data: string): Buffer => {
    const body = encode(JSON.parse(data))
    const frame = Buffer.alloc(4 + body.length)
    frame.writeUInt32BE(body.length)
    frame.set(body, 4)
    return frame
  }
  return {
    /** A comment that keeps a quiet stream alive has no form here. */
    options: { headers: { 'content-type': mediaType }, beat: '' },
    async *encode(all: AsyncIterable<Told>): AsyncGenerator<Uint8Array, void, undefined> {
      for await (const one of all) {
        if (one === 'idle') continue
        const events = 'text' in one ? eventsIn(one.text) : one.events
        if (events.length > 0) yield Buffer.concat(events.map(framed))
      }
    },
  }
}

/** Pieces come as text that all readers share; here each event is needed by itself. */
const eventsIn = (text: string): string[] =>
  text
    .split('\n')
    .filter((line) => line.startsWith('data: '))
    .map((line) => line.slice('data: '.length))
