import { RuntimeError } from '../../core/errors.ts'
import { wrong } from './scribe.ts'

/** Characters of one line, and bytes of all. */
const longest = 10 * 1024 * 1024
const mostBytes = 256 * 1024 * 1024

/** The JSON values of a body that has one on each line. */
export async function* jsonLines(response: Response): AsyncGenerator<unknown, void, undefined> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  const decode = (chunk?: Uint8Array) => {
    try {
      return decoder.decode(chunk, { stream: chunk !== undefined })
    } catch {
      throw wrong('it is not valid UTF-8')
    }
  }
  let rest = ''
  let size = 0
  for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    size += chunk.length
    if (size > mostBytes) throw wrong(`over ${mostBytes} bytes in one answer`)
    const lines = (rest + decode(chunk)).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) if (line.trim() !== '') yield parse(line)
    if (rest.length > longest) throw wrong(`a line of over ${longest} characters`)
  }
  rest += decode()
  if (rest.trim() !== '') yield parse(rest)
}

function parse(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch (error) {
    throw error instanceof RuntimeError ? error : wrong('a line that is not JSON')
  }
}
