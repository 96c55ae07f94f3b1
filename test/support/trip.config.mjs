// A server with that graph, for tests that kill it.
import { appendFileSync } from 'node:fs'
import { defineConfig, governed, governedTools, langgraph } from '../../dist/index.js'
import { tripGraph } from './trip.mjs'

const { CRASH_OUTSIDE = '/dev/null', CRASH_LIFE = '', CRASH_MODELS = '/dev/null' } = process.env

const { graph, tools } = tripGraph(
  { governed, governedTools },
  {
    paid: (one) =>
      appendFileSync(
        CRASH_OUTSIDE,
        `${JSON.stringify({ ...one, by: CRASH_LIFE, at: Date.now() })}\n`,
      ),
    called: () => appendFileSync(CRASH_MODELS, '.'),
  },
)

export default defineConfig({
  agents: [langgraph(graph, { name: 'trip', tools })],
  builtIns: false,
  policy: [{ tool: 'pay', decision: 'allow' }],
})
