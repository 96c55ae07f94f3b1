// A server whose agents run elsewhere: what tests kill while they are at it.
import { aguiAgent, defineConfig, langGraphPlatform, workflow } from '../../dist/index.js'

const { TEST_AGUI, TEST_LANGGRAPH, TEST_IDEMPOTENT, TEST_STEP, TEST_RETRIED } = process.env

export default defineConfig({
  agents: [
    ...(TEST_STEP
      ? [workflow({ name: 'flow', steps: [{ agent: 'far', outputKey: TEST_STEP }] })]
      : []),
    ...(TEST_RETRIED
      ? [
          workflow({
            name: 'flow',
            steps: [{ agent: TEST_RETRIED, outputKey: 'a', retry: { attempts: 3, first: 1 } }],
          }),
        ]
      : []),
    ...(TEST_AGUI
      ? [
          aguiAgent({
            name: 'far',
            url: TEST_AGUI,
            idempotent: TEST_IDEMPOTENT === 'yes',
            timeouts: { total: 3_000 },
          }),
        ]
      : []),
    ...(TEST_LANGGRAPH
      ? langGraphPlatform({ deploymentUrl: TEST_LANGGRAPH, agents: ['clerk'] })
      : []),
  ],
})
