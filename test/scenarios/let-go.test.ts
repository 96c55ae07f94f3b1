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
