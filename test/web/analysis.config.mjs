// The account analysis with gates in its way: steps stand until the test lets them go on, or fail.
import { appendFileSync, existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  accountAnalysis,
  defineConfig,
  memoryAnalyst,
  RuntimeError,
  recommendationAuthor,
  sampleCrm,
  toolLoop,
  workflow,
  zohoScout,
} from '../../dist/index.js'

const { BROWSER_STAGE = '' } = process.env

/** The accounts of stories that stand in the middle of the second step. */
const gated = ['ACC-003', 'ACC-004', 'ACC-005']
const forgotten = 'ACC-007'

const sample = sampleCrm()
const crm = {
  ...sample,
  async account(id, signal) {
    appendFileSync(`${BROWSER_STAGE}/guests`, `${id}\n`)
    return await sample.account(id, signal)
  },
}

const analyst = memoryAnalyst()
const memory = {
  ...analyst,
  async *run(ctx) {
    const told = JSON.stringify(ctx.messages())
    const gate = gated.find((id) => told.includes(id))
    while (gate && !existsSync(`${BROWSER_STAGE}/${gate}`))
      await sleep(10, undefined, { signal: ctx.signal })
    if (told.includes(forgotten)) throw new RuntimeError('agent_failed', 'The notes are lost.')
    yield* analyst.run(ctx)
  },
}

/** A decision has to be made in seconds where a test waits for it not to be. */
const approvalTimeout = Number(process.env.ANALYSIS_TIMEOUT ?? 300_000)

export default defineConfig({
  agents: [
    toolLoop({ name: 'assistant', description: 'Answers, and uses tools' }),
    {
      agent: workflow(accountAnalysis({ optional: ['memory_analyst'], approvalTimeout })),
      tools: [],
    },
    { agent: zohoScout(crm), tools: [] },
    { agent: memory, tools: [] },
    { agent: recommendationAuthor(), tools: [] },
  ],
})
