import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { expect, test, vi } from 'vitest'
import { read } from '../../src/core/entries.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { fileStore } from '../../src/stores/file/store.ts'
import { chatsClient } from '../support/chats.ts'
import { checkJournal } from '../support/journal.ts'
import { startServer, temporaryDirectory } from '../support/server.ts'
import { answerTo } from '../support/trip.mjs'
import { executions } from './outside.ts'

vi.setConfig({ testTimeout: 120_000 })

const config = fileURLToPath(new URL('../support/trip.config.mjs', import.meta.url))

/** Where a graph in the middle of its work dies, and the how manieth time it comes by. */
const ends = [
  ...['checkpoint.kept:1', 'checkpoint.kept:2', 'checkpoint.kept:4', 'checkpoint.kept:7'],
  ...['before checkpoint.kept:1', 'before checkpoint.kept:3', 'before checkpoint.kept:6'],
  ...['effect.intended:1', 'effect.intended:2', 'effect.intended:3', 'before effect.done:2'],
  ...['effect.ran:1', 'effect.ran:2', 'effect.ran:3', 'effect.done:1', 'effect.done:2'],
  ...['message.added:2', 'message.added:3', 'message.added:5', 'model.pieces:1', 'model.pieces:2'],
  ...['ask.raised:1', 'before ask.raised:1', 'run.waiting:1', 'before run.waiting:1'],
  ...['ask.answered:1', 'ask.answered:2', 'run.started:2', 'state.patched:1', 'event:4'],
]

/** One of two in CI, each kind among them; all when many kills are asked for. */
const every = process.env.HANDRAIL_KILLS === undefined ? 2 : 1

const words: Record<string, string> = { 'Which colour?': 'red', 'Which size?': 'big' }

interface Approval {
  approval_id: string
  kind: string
  card: { title: string; effect_id?: string }
}

test.for(ends.filter((_, n) => n % every === 0))(
  'a graph that dies at %s pays once, and tells of it once',
  async (crash) => {
    const { path, remove } = await temporaryDirectory()
    const outside = `${path}/outside`
    const models = `${path}/models`
    const env = {
      ...{
        HANDRAIL_CONFIG: config,
        HANDRAIL_DATA: `${path}/data`,
        HANDRAIL_SPOOL: `${path}/spool`,
      },
      ...{ HANDRAIL_LEASE_MS: '300', CRASH_OUTSIDE: outside, CRASH_MODELS: models },
    }
    const first = await startServer({ ...env, HANDRAIL_CRASH: crash })
    const begun = chatsClient(first.url).start('chat', 'trip #7')
    await begun.then((stream) => stream.response.body?.cancel()).catch(() => {})
    await Promise.race([first.exited, play(first.url)]).catch(() => {})
    const died = await Promise.race([first.exited, sleep(10_000, undefined)])
    expect(died?.signal, 'it came by its point').toBe('SIGKILL')

    const second = await startServer(env)
    const client = chatsClient(second.url)
    if ((await client.chat('chat')).interactions === undefined)
      await client.start('chat', 'trip #7')
    const interaction = await play(second.url, outside)
    await second.stop()
    expect(interaction.status).toBe('COMPLETED')
    const said = interaction.agent_events.flatMap((one: { type: string; content: string }) => {
      return one.type === 'ANSWER' ? [one.content] : []
    })
    expect(said).toEqual([answerTo('trip #7'), answerTo('big and red, paid 7')])
    expect(executions(outside).map(({ n }) => n)).toEqual([7])

    const store = await fileStore({ directory: `${path}/data`, clock: systemClock })
    const journal = (await store.read('chat', { limit: 1e6 })).map(read)
    await store.close()
    checkJournal(journal)
    const intents = journal.filter((one) => one.kind === 'effect.intended')
    const charged = intents.filter(({ body }) => body.effect === 'model').length
    expect(readFileSync(models, 'utf8').length, 'calls made are calls charged').toBeLessThanOrEqual(
      charged,
    )
    const done = journal.filter((one) => one.kind === 'effect.done' && one.body.effect === 'model')
    expect(done.length, 'a recorded answer is not asked for again').toBe(2)
    await remove()
  },
)

/** A person at the page: answers all that is asked until it is over. What is in doubt they look up outside. */
// biome-ignore lint/suspicious/noExplicitAny: the wire's JSON
async function play(url: string, outside?: string): Promise<any> {
  const client = chatsClient(url)
  for (;;) {
    const { interactions = [] } = await client.chat('chat')
    const one = interactions.at(-1)
    if (one?.completed_at) return one
    for (const { approval_id, kind, card } of (one?.approvals ?? []) as Approval[]) {
      const happened = outside !== undefined && executions(outside).length > 0
      const doubt = happened ? { outcome: 'happened', result: 'paid 7' } : { outcome: 'did_not' }
      const answer = kind === 'in_doubt' ? doubt : { answer: words[card.title] }
      await client.approve('chat', one.id, { approval_id, ...answer })
    }
    await sleep(50)
  }
}
