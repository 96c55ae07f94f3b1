import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, onTestFinished, test } from 'vitest'
import { memoryAnalyst } from '../../../src/agents/account-analysis/memory-analyst.ts'
import { recommendationAuthor } from '../../../src/agents/account-analysis/recommendation-author.ts'
import { accountAnalysis } from '../../../src/agents/account-analysis/steps.ts'
import { zohoScout } from '../../../src/agents/account-analysis/zoho-scout.ts'
import { workflow } from '../../../src/agents/workflow/agent.ts'
import { RuntimeError } from '../../../src/core/errors.ts'
import { sampleCrm } from '../../../src/tools/zoho/sample.ts'
import { serve } from '../../support/serve.ts'
import { startServer, temporaryDirectory } from '../../support/server.ts'
import { warpClock } from '../../support/warp-clock.ts'
import { wires } from './drivers.ts'

const three = ['zoho_scout', 'memory_analyst', 'recommendation_author']
const standing = (...statuses: string[]) =>
  Object.fromEntries(statuses.map((status, i) => [three[i]!, status]))
const done = standing('completed', 'completed', 'completed')
const asked = { end: 'waiting', agents: done, recommendation: 'retention_call', errors: [] }

/** The same agents, but that the second one always fails. */
function withoutMemory(optional: boolean) {
  const broken = {
    ...memoryAnalyst(),
    // biome-ignore lint/correctness/useYield: it fails at once
    async *run() {
      throw new RuntimeError('agent_failed', 'out of memory')
    },
  }
  const analysis = accountAnalysis(optional ? { optional: ['memory_analyst'] } : {})
  const agents = [workflow(analysis), zohoScout(sampleCrm()), broken, recommendationAuthor()]
  return { agents }
}
const lost = { agent: 'memory_analyst', error: 'out of memory', code: 'agent_failed' }

describe.for(wires)('the account analysis over $wire', ({ open }) => {
  test.for([
    [true, undefined, 'approved', null],
    [false, 'too early', 'rejected', 'too early'],
    [false, undefined, 'rejected', 'No reason provided'],
  ] as const)('goes from question to end: %s, %s', async ([approved, why, status, reason]) => {
    const server = await serve()
    const client = await open(server.url)
    const waiting = await client.start('ACC-002')
    expect(waiting).toMatchObject(asked)
    expect(waiting.lines.join('\n')).toContain('Harbour Foods')
    const over = await client.decide(approved, why)
    expect(over).toMatchObject({
      ...{ end: 'completed', agents: done, completed: three, errors: [], account: 'Harbour Foods' },
      ...{ recommendation: undefined, failure: undefined },
      approval: { status, reason, by: 'local' },
    })
    expect(over.lines.at(-1)).toContain(`Approval: ${status}.`)
    expect(await (await open(server.url)).join(), 'who comes later sees the same').toEqual(over)
  })

  test('goes on without a step that it can do without, and says so', async () => {
    const server = await serve(withoutMemory(true))
    const client = await open(server.url)
    const agents = standing('completed', 'failed', 'completed')
    const errors = [{ ...lost, critical: false }]
    expect(await client.start('ACC-002')).toMatchObject({ ...asked, agents, errors })
    const over = await client.decide(true)
    expect(over).toMatchObject({
      ...{ end: 'completed', agents, errors, account: 'Harbour Foods' },
      completed: ['zoho_scout', 'recommendation_author'],
      approval: { status: 'approved' },
    })
    expect(await (await open(server.url)).join()).toEqual(over)
  })

  test('ends without a step that it cannot do without, with what there is', async () => {
    const server = await serve(withoutMemory(false))
    const over = await (await open(server.url)).start('ACC-002')
    const told = {
      ...{ end: 'failed', agents: standing('completed', 'failed'), completed: ['zoho_scout'] },
      ...{ errors: [{ ...lost, critical: true }], account: 'Harbour Foods', approval: undefined },
    }
    expect(over).toMatchObject(told)
    expect(over.failure).toContain('Critical agent memory_analyst failed: out of memory')
    const { failure: _, ...later } = await (await open(server.url)).join()
    expect(later).toMatchObject(told)
  })

  test('ends by itself when nobody answers in time', async () => {
    const clock = warpClock()
    const server = await serve({}, { clock })
    const client = await open(server.url)
    expect(await client.start('ACC-002')).toMatchObject(asked)
    await server.recorded('t', 'run.waiting')
    clock.advance(301_000)
    await server.recorded('t', 'run.completed')
    const approval = { status: 'timeout', reason: 'Approval request timed out', by: null }
    const over = { end: 'completed', completed: three, recommendation: undefined, approval }
    expect(await client.follow()).toMatchObject(over)
    expect(await (await open(server.url)).join()).toMatchObject(over)
  })

  test('goes on after a kill in the middle of its second step, and says nothing twice', async () => {
    const { path, remove } = await temporaryDirectory()
    onTestFinished(remove)
    const env = {
      ...{ HANDRAIL_DATA: `${path}/data`, HANDRAIL_SPOOL: `${path}/spool` },
      ...{ HANDRAIL_LEASE_MS: '300', HANDRAIL_DEMO_DELAY_MS: '0' },
    }
    // The second effect is the look into the history: it was made, and nobody knows yet.
    const first = await startServer({ ...env, HANDRAIL_CRASH: 'effect.ran:2' })
    onTestFinished(() => first.kill())
    const cut = await open(first.url)
    await Promise.race([first.exited, cut.start('ACC-002').catch(() => {})])
    const died = await Promise.race([first.exited, sleep(10_000, undefined)])
    expect(died?.signal).toBe('SIGKILL')
    const second = await startServer(env)
    onTestFinished(() => second.kill())
    const client = await open(second.url)
    expect(await client.join()).toMatchObject(asked)
    const over = await client.decide(true)
    expect(over).toMatchObject({
      ...{ end: 'completed', agents: done, completed: three, errors: [], account: 'Harbour Foods' },
      approval: { status: 'approved' },
    })
    expect(over.lines.length, over.lines.join('\n')).toBe(new Set(over.lines).size)
    expect(over.lines.length).toBe(4)
  })
})
