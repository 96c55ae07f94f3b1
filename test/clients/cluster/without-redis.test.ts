import { afterAll, beforeAll, expect, test } from 'vitest'
import { transcript } from '../../support/chats.ts'
import { screen } from '../../support/screen.ts'
import { find } from '../../support/tools.ts'
import { finished, httpClient, interruptsOf } from '../support.ts'
import { count, openCluster, paid, type TestCluster, yes } from './support.ts'

// Two servers that have the database in common and nothing else: slower, and as right.
let all: TestCluster

beforeAll(async () => {
  all = await openCluster({ count: 2, redis: false })
}, 120_000)

afterAll(() => all.stop())

test('a stream of one server shows the end of a run that the other drives', async () => {
  const [a, b] = all.members
  const started = await a.chats.start('tell', 'tell 100')
  const { interaction_id } = find(await started.until('answer_delta'), 'interaction_started')
  const joined = await b.chats.join('tell', interaction_id)
  const agui = httpClient(b.url, 'tell')
  const [frames, stream] = await Promise.all([joined.rest(), agui.connect(), started.rest()])
  expect([...transcript(frames).values()]).toEqual([count(100)])
  expect(find(frames, 'interaction_complete').status).toBe('COMPLETED')
  finished(stream)
  expect(agui.shown()).toEqual(['user: tell 100', `assistant: ${count(100)}`])
  expect(screen(await (await b.chats.join('tell', interaction_id)).rest())).toEqual(screen(frames))
})

test('what one asked is answered on the other, done once, and told to both', async () => {
  const [a, b] = all.members
  const [interrupt] = interruptsOf(await httpClient(a.url, 'ann').say('pay ann'))
  const { interactions } = await a.chats.chat('ann')
  const watching = await a.chats.join('ann', interactions[0].id)
  await watching.until('approval_required')
  const page = httpClient(b.url, 'ann')
  await page.connect()
  finished(await page.run(yes(interrupt!.id)))
  expect(page.shown()).toEqual(paid('ann').agui)
  expect(find(await watching.rest(), 'interaction_complete').status).toBe('COMPLETED')
  expect(all.marks('pay', 'ann')).toMatchObject([{ server: 'B' }])
})

test('a stop on one ends what the other drives', async () => {
  const [a, b] = all.members
  const started = await a.chats.start('stop', 'tell 5000')
  const { interaction_id } = find(await started.until('answer_delta'), 'interaction_started')
  expect((await b.chats.cancel('stop', interaction_id)).status).toBe(200)
  expect(find(await started.rest(), 'interaction_complete').status).toBe('CANCELLED')
  expect((await b.chats.chat('stop')).interactions).toMatchObject([{ status: 'CANCELLED' }])
})
