import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test, vi } from 'vitest'
import { type Known, read } from '../../src/core/entries.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { fileStore } from '../../src/stores/file/store.ts'
import { chatsClient } from '../support/chats.ts'
import { checkJournal } from '../support/journal.ts'
import { startServer, temporaryDirectory } from '../support/server.ts'

vi.setConfig({ testTimeout: 120_000 })

/** Where the account analysis dies: most of them in the middle of its second step, some around it. */
const ends = [
  ...['effect.done:1', 'event:3', 'state.patched:2', 'before state.patched:2'],
  ...['event:6', 'effect.intended:2', 'before effect.intended:2', 'effect.ran:2'],
  ...['before effect.done:2', 'effect.done:2', 'message.added:5', 'message.added:7'],
  ...['effect.ran:3', 'ask.raised:1', 'run.waiting:1', 'ask.answered:1'],
]

const body = { account_id: 'ACC-002', session_id: 's', user_message: 'Analyse it' }

/** Reads what the session does and approves what it asks, until it ends; false when the server went. */
async function play(url: string): Promise<boolean> {
  const client = chatsClient(url)
  for (let tries = 0; tries < 20; tries++) {
    const known = await client.request('GET', '/copilotkit/status?session_id=s')
    const open = () =>
      known.ok
        ? client.open('GET', '/agent-orchestrator?session_id=s')
        : client.open('POST', '/agent-orchestrator', body)
    const stream = await open()
    for await (const { event, data } of stream.frames) {
      if (event === 'workflow_completed') return true
      if (event !== 'approval_required') continue
      const path = `/copilotkit/approval/${data.data.approval_id}`
      await client.request('POST', path, { action: 'approve' })
    }
    await sleep(200)
  }
  return false
}

const count = (journal: readonly Known[], is: (one: Known) => boolean) => journal.filter(is).length

test.for(ends)('an analysis that dies at %s does each step once', async (crash) => {
  const { path, remove } = await temporaryDirectory()
  const env = {
    ...{ HANDRAIL_DATA: `${path}/data`, HANDRAIL_SPOOL: `${path}/spool` },
    ...{ HANDRAIL_LEASE_MS: '300', HANDRAIL_DEMO_DELAY_MS: '0' },
  }
  const first = await startServer({ ...env, HANDRAIL_CRASH: crash })
  await Promise.race([first.exited, play(first.url)]).catch(() => {})
  const died = await Promise.race([first.exited, sleep(10_000, undefined)])
  expect(died?.signal, 'it came by its point').toBe('SIGKILL')

  const second = await startServer(env)
  expect(await play(second.url)).toBe(true)
  const status = await chatsClient(second.url).request('GET', '/copilotkit/status?session_id=s')
  expect(await status.json()).toMatchObject({
    workflow_status: 'completed',
    agents: {
      zoho_scout: { status: 'completed' },
      memory_analyst: { status: 'completed' },
      recommendation_author: { status: 'completed' },
    },
  })
  await second.stop()
  const store = await fileStore({ directory: `${path}/data`, clock: systemClock })
  const journal = (await store.read('s', { limit: 1e6 })).map(read)
  await store.close()
  await remove()
  checkJournal(journal)
  const done = (name: string) =>
    count(journal, (one) => one.kind === 'effect.done' && one.body.name === name)
  expect([done('crm_account'), done('account_history'), done('demo')]).toEqual([1, 1, 1])
  expect(count(journal, ({ kind }) => kind === 'ask.raised')).toBe(1)
  const said = journal.flatMap((one) => {
    if (one.kind !== 'message.added' || one.body.message.role !== 'assistant') return []
    return one.body.for === 'both' ? [`${one.body.path}`] : []
  })
  expect(said, 'nothing is said twice').toEqual([
    ...['account_snapshot', 'account_snapshot', 'historical_context', 'historical_context'],
    ...['recommendations', 'undefined'],
  ])
})
