// The server under test: a workflow whose second step says where it begins, and never ends by itself.
import { appendFileSync } from 'node:fs'
import { defineConfig, workflow } from '../../dist/index.js'

const { BEGUN, STEP_TIMEOUT = '2000', STEP_REQUIRED = 'no' } = process.env

const plain = (name) => ({
  name,
  async *run(ctx) {
    appendFileSync(BEGUN, `${name}\n`)
    const parts = [{ type: 'text', text: `${name} is done` }]
    yield { type: 'message', message: { id: ctx.newId('msg'), role: 'assistant', parts } }
  },
})

const slow = {
  name: 'slow',
  // biome-ignore lint/correctness/useYield: it says nothing
  async *run(ctx) {
    appendFileSync(BEGUN, 'slow\n')
    await ctx.clock.sleep(3_600_000, ctx.signal)
  },
}

const required = STEP_REQUIRED === 'yes'

export default defineConfig({
  agents: [
    workflow({
      name: 'flow',
      steps: [
        { agent: plain('first'), outputKey: 'a' },
        { agent: slow, outputKey: 'b', timeout: Number(STEP_TIMEOUT), required },
        { agent: plain('last'), outputKey: 'c' },
      ],
    }),
  ],
})
