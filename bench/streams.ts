import type { IncomingMessage } from 'node:http'
import { bareServer, handrail, kb, type Measured, post, table, withDirectory } from './support.ts'

const streams = 500

/** What an open stream that says nothing costs: a run that waits for an approval. */
export async function streams500(): Promise<void> {
  const bare = await measure(await bareServer(), ': open')
  const ours = await withDirectory(async (directory) =>
    measure(await handrail(directory), 'event: approval_required'),
  )
  table(
    `4. Memory per idle stream (${streams} held, each a chat whose run waits for an approval)`,
    [
      ['', 'heap per stream', 'RSS per stream'],
      ['bare', ...bare],
      ['handrail', ...ours],
    ],
    [
      'After a garbage collection. Handrail: the chat in memory is included; the bare one has none.',
    ],
  )
}

async function measure(server: Measured, awaited: string): Promise<string[]> {
  const hold = async (name: string) => {
    const response = await post(`${server.url}/chats/${name}/interactions`, 'hold 1')
    await seen(response, awaited)
    return response
  }
  const warm = await Promise.all(Array.from({ length: 20 }, (_, n) => hold(`warm-${n}`)))
  const before = await server.usage('collect')
  const held: IncomingMessage[] = []
  while (held.length < streams) {
    const names = Array.from({ length: 50 }, (_, n) => `held-${held.length + n}`)
    held.push(...(await Promise.all(names.map(hold))))
  }
  const after = await server.usage('collect')
  for (const response of [...warm, ...held]) response.destroy()
  await server.stop()
  const each = (name: 'heapUsed' | 'rss') => kb((after[name] - before[name]) / streams)
  return [each('heapUsed'), each('rss')]
}

function seen(response: IncomingMessage, awaited: string): Promise<void> {
  let text = ''
  return new Promise((resolve, reject) => {
    response.on('data', (chunk) => {
      text += chunk
      if (text.includes(awaited)) resolve()
    })
    response.on('error', reject)
    response.on('end', () => reject(new Error(`the stream ended: ${text}`)))
  })
}
