import { pauses } from '../../lib/pause.ts'
import type { LongData, Told } from './stream.ts'

const mediaType = 'application/vnd.ag-ui.event+proto'

export const wantsProtobuf = (request: Request): boolean =>
  (request.headers.get('accept') ?? '').includes(mediaType)

/** Bytes of a long event that are sent at once. */
const batchBytes = 64 * 1024

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

  /**
   * A snapshot is an event with one field, whose value is the common fields and then the messages. So each message is encoded
   * in an event of its own, and the encodings of the messages are put together. Lets other requests run in between.
   */
  async function* framedSnapshot({ event: { type, messages }, stepsOf }: LongData) {
    const pause = pauses()
    const common = content(encode({ type, messages: [] } as never))
    const parts: Uint8Array[] = [common]
    for (const message of messages) {
      await pause()
      let text = ''
      for await (const step of stepsOf({ type, messages: [message] })) text += step
      parts.push(content(encode(JSON.parse(text))).subarray(common.length))
    }
    const length = parts.reduce((sum, part) => sum + part.length, 0)
    const start = [encode({ type, messages: [] } as never)[0]!, ...varint(length)]
    const size = Buffer.alloc(4)
    size.writeUInt32BE(start.length + length)
    let batch: Uint8Array[] = [size, Buffer.from(start)]
    let bytes = 0
    for (const part of parts) {
      batch.push(part)
      bytes += part.length
      if (bytes < batchBytes) continue
      yield Buffer.concat(batch)
      batch = []
      bytes = 0
    }
    yield Buffer.concat(batch)
  }

  return {
    /** A comment that keeps a quiet stream alive has no form here. */
    options: { headers: { 'content-type': mediaType }, beat: '' },
    async *encode(all: AsyncIterable<Told>): AsyncGenerator<Uint8Array, void, undefined> {
      for await (const one of all) {
        if (one === 'idle') continue
        const events = 'text' in one ? eventsIn(one.text) : one.events.map(({ data }) => data)
        let batch: Buffer[] = []
        for (const data of events) {
          if (typeof data === 'string') {
            batch.push(framed(data))
            continue
          }
          yield Buffer.concat(batch)
          batch = []
          yield* framedSnapshot(data)
        }
        if (batch.length > 0) yield Buffer.concat(batch)
      }
    },
  }
}

/** The value of the only field of an encoded event, whose number takes one byte. */
function content(encoded: Uint8Array): Uint8Array {
  let at = 1
  while (encoded[at]! >= 0x80) at++
  return encoded.subarray(at + 1)
}

/** A number as protobuf writes lengths: seven bits a byte, the lowest first. */
function varint(value: number): number[] {
  const bytes: number[] = []
  for (; value >= 0x80; value = Math.floor(value / 0x80)) bytes.push((value % 0x80) + 0x80)
  return [...bytes, value]
}

/** Pieces come as text that all readers share; here each event is needed by itself. */
const eventsIn = (text: string): string[] =>
  text
    .split('\n')
    .filter((line) => line.startsWith('data: '))
    .map((line) => line.slice('data: '.length))
