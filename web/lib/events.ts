import { request } from './api.ts'

export interface Frame {
  id: string | undefined
  event: string
  data: string
}

/** The events of a stream, until it ends or the signal fires. */
export async function* frames(path: string, signal: AbortSignal): AsyncGenerator<Frame, void> {
  const response = await request(path, { signal, headers: { accept: 'text/event-stream' } })
  const decoder = new TextDecoder()
  let text = ''
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk as Uint8Array, { stream: true })
    const parts = text.split('\n\n')
    text = parts.pop() ?? ''
    for (const part of parts) {
      const frame = frameOf(part)
      if (frame) yield frame
    }
  }
}

/** The data of each of them. */
export async function* events(path: string, signal: AbortSignal): AsyncGenerator<string, void> {
  for await (const { data } of frames(path, signal)) yield data
}

/** Undefined for comments, which only keep the connection. */
function frameOf(part: string): Frame | undefined {
  const lines = part.split('\n')
  const all = (name: string) =>
    lines
      .filter((line) => line.startsWith(`${name}:`))
      .map((line) => line.slice(name.length + 1).trimStart())
  const data = all('data')
  if (data.length === 0) return undefined
  return { id: all('id').at(-1), event: all('event').at(-1) ?? 'message', data: data.join('\n') }
}
