import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { Heartbeats } from '../sse.ts'
import { directResponse } from './direct.ts'
import type { Generated, RuntimeEvent } from './events.ts'

const steps = Array.from({ length: 20 }, (_, i) => `"${i} \\"ä😀\\" ${'x'.repeat(100_000)}",`)
const whole = steps.join('')

const state: RuntimeEvent = {
  ...{ type: 'AgentStateMessage', id: 's', threadId: 't', agentName: 'a', nodeName: '' },
  ...{ runId: 'r', active: false, running: false, at: 0 },
  state: {
    async *steps() {
      for (const step of steps) {
        await setImmediate()
        yield step
      }
    },
  },
}

const generated: Generated = {
  threadId: 't',
  runId: 'r',
  extensions: null,
  async *events() {
    yield [state, { type: 'ResponseEnd', status: { code: 'Success' } }]
  },
}

const failed = (): RuntimeEvent => ({ type: 'ResponseEnd', status: { code: 'Success' } })

test('the part with a long state is sent in chunks of a limited size, and its header tells its length', async () => {
  const heartbeats = new Heartbeats(5)
  const chunks: Buffer[] = []
  for await (const chunk of directResponse(generated, heartbeats, failed).body!) {
    chunks.push(Buffer.from(chunk))
    await new Promise((resolve) => setTimeout(resolve, 2)) // keep-alives are due in between
  }
  expect(Math.max(...chunks.map(({ length }) => length))).toBeLessThan(200_000)
  const bytes = Buffer.concat(chunks)
  const states: string[] = []
  let at = 0
  for (let start = bytes.indexOf('\r\n\r\n'); start >= 0; start = bytes.indexOf('\r\n\r\n', at)) {
    const header = bytes.subarray(at, start).toString()
    at = start + 4 + Number(/Content-Length: (\d+)/.exec(header)![1])
    const part = JSON.parse(bytes.subarray(start + 4, at).toString())
    for (const { items = [] } of part.incremental ?? [])
      for (const item of items) states.push(item.state)
  }
  expect(bytes.subarray(at).toString()).toBe('\r\n-----\r\n')
  expect(states).toEqual([whole])
})

test('a long state that cannot be made to its end breaks the response off, and no other part is put inside of its part', async () => {
  let times = 0
  async function* steps() {
    times++
    yield '"a",'
    if (times === 2) throw new Error('erased')
    yield '"b",'
  }
  const broken: Generated = {
    ...generated,
    async *events() {
      yield [
        { ...state, state: { steps } },
        { type: 'ResponseEnd', status: { code: 'Success' } },
      ]
    },
  }
  let text = ''
  const read = async () => {
    for await (const chunk of directResponse(broken, new Heartbeats(1_000), failed).body!)
      text += Buffer.from(chunk).toString()
  }
  await expect(read()).rejects.toThrow('erased')
  expect(text.match(/Content-Length/g)).toHaveLength(2)
})
