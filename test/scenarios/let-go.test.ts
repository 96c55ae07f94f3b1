import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { defineTool } from '../../src/core/tool.ts'
import { call, scriptedModel, text } from '../../src/models/scripted.ts'
import { serve } from '../support/serve.ts'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

test('what a call was is let go when it is over, also where the tool still listens to its signal', async () => {
  const signals: WeakRef<AbortSignal>[] = []
  const listen = defineTool({
    name: 'listen',
    description: 'Listens to its signal, and never stops to.',
    schema: z.strictObject({}),
    access: 'read',
    run: async (_input, { signal }) => {
      signals.push(new WeakRef(signal))
      signal.addEventListener('abort', () => {})
      return 'heard'
    },
  })
  const model = scriptedModel(({ messages }) =>
    messages.at(-1)!.role === 'tool' ? [text('Done.')] : [call('1', 'listen', {})],
  )
  const server = await serve({ model, tools: [listen] })
  for (let n = 0; n < 10; n++) await (await server.start(`c${n}`, 'go')).rest()
  expect(signals).toHaveLength(10)
  const kept = () => {
    collect()
    return signals.filter((one) => one.deref() !== undefined).length
  }
  // The last one may still be on somebody's stack.
  await expect.poll(kept).toBeLessThanOrEqual(1)
})

test('a watch stream on which nothing happens keeps no thread in memory, and still reports changes', async () => {
  const model = scriptedModel(() => [text('Done.')])
  const server = await serve({ model }, { env: { HANDRAIL_CACHE_BYTES: '1' } })
  const names = ['c0', 'c1', 'c2', 'c3', 'c4', 'c5']
  const threads: WeakRef<object>[] = []
  const streams: ReadableStreamDefaultReader<Uint8Array>[] = []
  for (const name of names) {
    await (await server.start(name, 'go')).rest()
    const response = await fetch(`${server.url}/copilotkit/threads/${name}/watch`)
    const reader = response.body!.getReader()
    streams.push(reader)
    expect(Buffer.from((await reader.read()).value!).toString()).toContain('"status":"idle"')
    threads.push(new WeakRef(await server.server.runtime.thread(name)))
  }
  const kept = () => {
    collect()
    return threads.filter((one) => one.deref() !== undefined).length
  }
  // The cache keeps the last one.
  await expect.poll(kept).toBeLessThanOrEqual(2)

  await server.request('PATCH', '/copilotkit/threads/c0', { name: 'Other' })
  expect(Buffer.from((await streams[0]!.read()).value!).toString()).toContain('"name":"Other"')
  await server.request('DELETE', '/chats/c1')
  expect((await streams[1]!.read()).done).toBe(true)
  await Promise.all(streams.map((reader) => reader.cancel()))
})
