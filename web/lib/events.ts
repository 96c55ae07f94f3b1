import { request } from './api.ts'

/** The data of each event of a stream, until it ends or the signal fires. */
export async function* events(path: string, signal: AbortSignal): AsyncGenerator<string, void> {
  const response = await request(path, { signal, headers: { accept: 'text/event-stream' } })
  const decoder = new TextDecoder()
  let text = ''
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk as Uint8Array, { stream: true })
    const frames = text.split('\n\n')
    text = frames.pop() ?? ''
    for (const frame of frames) {
      const data = frame
        .split('\n')
        .filter((line) => line.startsWith('data:'))
        .map((line) => line.slice(5).trimStart())
      if (data.length > 0) yield data.join('\n')
    }
  }
}
