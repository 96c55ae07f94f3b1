import { type FileHandle, open } from 'node:fs/promises'
import { crc32 } from 'node:zlib'
import { isMissing } from './disk.ts'

const newline = 10
const sum = (bytes: Buffer) => crc32(bytes).toString(16).padStart(8, '0')

/** `["<crc32 of the payload>",<payload>]` and a newline. */
export function frame(payload: string | Buffer): Buffer {
  const bytes = typeof payload === 'string' ? Buffer.from(payload) : payload
  return Buffer.concat([Buffer.from(`["${sum(bytes)}",`), bytes, Buffer.from(']\n')])
}

/** The payload of a framed line (without its newline), if it is the one that was written. */
export function unframe(line: Buffer): Buffer | undefined {
  if (line.length < 13 || line[0] !== 0x5b || line[line.length - 1] !== 0x5d) return undefined
  const payload = line.subarray(12, -1)
  return line.toString('latin1', 0, 12) === `["${sum(payload)}",` ? payload : undefined
}

/** Puts the sum of the rest of the line into the line itself: `{"crc":"...",<rest>`. */
export function seal(rest: string): Buffer {
  const bytes = Buffer.from(rest)
  return Buffer.concat([Buffer.from(`{"crc":"${sum(bytes)}",`), bytes])
}

export const sealLength = 18

export function isSealed(line: Buffer): boolean {
  if (line.length <= sealLength) return false
  return line.toString('latin1', 0, sealLength) === `{"crc":"${sum(line.subarray(sealLength))}",`
}

export interface Line {
  /** Without the newline; `whole` says whether there was one. */
  bytes: Buffer
  offset: number
  whole: boolean
}

/** Every line of a file that may be larger than memory should hold, from a place on. No file: no lines. */
export async function* linesOf(path: string, from = 0): AsyncGenerator<Line> {
  let file: FileHandle
  try {
    file = await open(path, 'r')
  } catch (error) {
    if (isMissing(error)) return
    throw error
  }
  try {
    let rest: Buffer[] = []
    let offset = from
    let position = from
    for (;;) {
      // Most journals are short, and there may be very many of them.
      const chunk = Buffer.allocUnsafe(position === from ? 1 << 14 : 1 << 18)
      const { bytesRead } = await file.read(chunk, 0, chunk.length, position)
      if (bytesRead === 0) break
      position += bytesRead
      let begin = 0
      const read = chunk.subarray(0, bytesRead)
      for (let at = read.indexOf(newline); at !== -1; at = read.indexOf(newline, begin)) {
        const bytes =
          rest.length > 0
            ? Buffer.concat([...rest, read.subarray(begin, at)])
            : read.subarray(begin, at)
        yield { bytes, offset, whole: true }
        offset += bytes.length + 1
        begin = at + 1
        rest = []
      }
      if (begin < bytesRead) rest.push(read.subarray(begin))
    }
    const bytes = Buffer.concat(rest)
    if (bytes.length > 0) yield { bytes, offset, whole: false }
  } finally {
    await file.close()
  }
}
