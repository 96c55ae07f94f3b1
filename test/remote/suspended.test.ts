import type { ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { type ChatsClient, chatsClient, transcript } from '../support/chats.ts'
import { freePort } from '../support/redis.ts'
import { type Servers, startServers } from '../support/servers.ts'
import {
  finished,
  interactionOf,
  type Remote,
  remote,
  sse,
  started,
  textEvents,
} from './support.ts'

// Two servers on one Postgres. The first one is suspended (SIGSTOP) while a remote agent answers.
let port: number
let far: Remote
let all: Servers
let first: ChatsClient
let second: ChatsClient
let held: ServerResponse | undefined

beforeAll(async () => {
  port = await freePort()
  all = await startServers({
    count: 2,
    redis: false,
    env: () => ({
      HANDRAIL_CONFIG: new URL('./handrail.config.mjs', import.meta.url).pathname,
      HANDRAIL_LEASE_MS: '1000',
      TEST_AGUI: `http://127.0.0.1:${port}/run`,
    }),
  })
  const [one, other] = all.servers.map(({ url }) => chatsClient(url))
  first = one!
  second = other!
}, 120_000)

afterAll(() => all?.stop())

/** The state of the chat on the second server, once it meets the condition. */
async function until(chat: string, ready: (interaction: Interaction) => boolean) {
  for (let n = 0; n < 600; n++) {
    const { interactions } = await second.chat(chat)
    if (ready(interactions[0])) return interactions[0]
    await sleep(50)
  }
  throw new Error(JSON.stringify(await second.chat(chat)))
}
// biome-ignore lint/suspicious/noExplicitAny: the wire's JSON, looked into by assertions
type Interaction = any

const texts = ({ agent_events }: Interaction): string[] =>
  agent_events
    .filter(({ type }: { type: string }) => type === 'ANSWER')
    .map(({ content }: { content: string }) => content)

/** Starts a run on the first server, and suspends it once the first message of the remote is durable. */
async function suspendFirst(chat: string) {
  far = await remote((_, response) => {
    if (far.asked.length > 1)
      return sse(response, [started, ...textEvents('m3', 'Again.'), finished])
    held = response
    const open = textEvents('m2', 'Second.').slice(0, 2)
    sse(response, [started, ...textEvents('m1', 'First.'), ...open], false)
  }, port)
  const server = all.servers[0]!
  const stream = await first.start(chat, 'go')
  const run = interactionOf(stream.response)
  await until(chat, (interaction) => interaction && texts(interaction).includes('First.'))
  server.suspend()
  onTestFinished(() => server.resume())
  onTestFinished(() => stream.leave())
  sse(held!, [...textEvents('m2', 'Second.').slice(2), finished])
  const { approvals } = await until(chat, ({ approvals }) => approvals?.length > 0)
  expect(approvals).toMatchObject([{ kind: 'in_doubt' }])
  const [{ approval_id }] = approvals
  await sleep(300)
  return { run, stream, approval_id, resume: () => server.resume() }
}

test('a server that was suspended while a remote agent answered settles the open question with the answer (I3, I4)', async () => {
  const { run, stream, resume } = await suspendFirst('late')
  const joined = await second.join('late', run)
  resume()
  const interaction = await until('late', ({ status }) => status === 'COMPLETED')
  expect(texts(interaction)).toEqual(['First.', 'Second.'])
  expect(far.asked).toHaveLength(1)
  // Live readers of both servers show each message once.
  for (const reader of [stream, joined])
    expect([...transcript(await reader.rest()).values()]).toEqual(['First.', 'Second.'])
  // The next message continues the same thread of the remote.
  const next = await second.start('late', 'more')
  await next.rest()
  expect(far.asked[1]?.body.threadId).toBe(far.asked[0]?.body.threadId)
}, 120_000)

test.each([
  ['did not happen', { outcome: 'did_not' }, 'COMPLETED', ['First.', 'Again.']],
  ['happened', { outcome: 'happened', result: 'I saw.' }, 'COMPLETED', ['First.', 'I saw.']],
  ['is skipped', { outcome: 'skip' }, 'FAILED', ['First.']],
])(
  'the answer that a suspended server has read changes nothing after a person said that it %s (I2)',
  async (name, decision, status, said) => {
    const { run, approval_id, resume } = await suspendFirst(name)
    expect((await second.approve(name, run, { approval_id, ...decision })).status).toBe(200)
    await until(name, (interaction) => interaction.status === status)
    resume()
    await sleep(2_000)
    const interaction = await until(name, (one) => one.status === status)
    expect(texts(interaction)).toEqual(said)
  },
  120_000,
)
