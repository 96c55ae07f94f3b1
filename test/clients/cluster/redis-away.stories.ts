import { expect, test } from 'vitest'
import { transcript } from '../../support/chats.ts'
import { find } from '../../support/tools.ts'
import { openPage, succeeded, userMessage } from '../graphql/support.ts'
import { finished, httpClient, interruptsOf } from '../support.ts'
import { count, paid, pause, type TestCluster, yes } from './support.ts'

export function redisAway(cluster: () => TestCluster): void {
  /** An answer that one server gives, read on all three and by every wire, and something that waits. */
  async function scene(name: string) {
    const [a, b, c] = cluster().members
    const [interrupt] = interruptsOf(await httpClient(b.url, name).say(`pay ${name}`))
    const chat = `tell-${name}`
    const page = openPage(a.url, { threadId: chat })
    page.add(userMessage('tell 400'))
    const telling = page.begin()
    await telling.sees('1 2 3')
    const { interactions } = await b.chats.chat(chat)
    const [joined, third] = await Promise.all(
      [b, c].map((one) => one.chats.join(chat, interactions[0].id)),
    )
    const agui = httpClient(c.url, chat)
    const connecting = agui.connect()
    await third!.until('answer_delta')

    /** Whatever happened meanwhile: it was told to its end, and what waited can be approved anywhere. */
    const heals = async () => {
      const answering = httpClient(c.url, name)
      finished(await answering.run(yes(interrupt!.id)))
      await answering.connect()
      expect(answering.shown()).toEqual(paid(name).agui)
      expect(cluster().marks('pay', name)).toHaveLength(1)

      succeeded(await telling.done)
      expect(page.shown()).toEqual(['user: tell 400', `assistant: ${count(400)}`])
      for (const stream of [joined!, third!]) {
        const frames = await stream.rest()
        expect(transcript(frames).values().next().value).toBe(count(400))
        expect(find(frames, 'interaction_complete').status).toBe('COMPLETED')
      }
      finished(await connecting)
      expect(agui.shown()).toEqual(page.shown())
    }
    return heals
  }

  test('Redis is flushed: the streams heal, and what waits can be approved', async () => {
    const heals = await scene('mia')
    await cluster().redis!.command('FLUSHALL')
    await heals()
  })

  test('Redis is killed: runs go on, begin, are read elsewhere, and are stopped without it', async () => {
    const [a, b, c] = cluster().members
    const heals = await scene('max')
    await cluster().redis!.kill()
    await heals()
    const started = await b.chats.start('without', 'tell 60')
    const joined = await c.chats.join('without', started.response.headers.get('x-interaction-id')!)
    expect([...transcript(await joined.rest()).values()]).toEqual([count(60)])
    const long = await a.chats.start('long', 'tell 5000')
    const { interaction_id } = find(await long.until('answer_delta'), 'interaction_started')
    expect((await b.chats.cancel('long', interaction_id)).status).toBe(200)
    expect(find(await long.rest(), 'interaction_complete').status).toBe('CANCELLED')
  })

  test('Redis is back, and empty: everything goes by it again', async () => {
    const [a, , c] = cluster().members
    await cluster().redis!.start()
    await pause(2_500)
    const started = await a.chats.start('back', 'tell 300')
    const { interaction_id } = find(await started.until('answer_delta'), 'interaction_started')
    const frames = await (await c.chats.join('back', interaction_id)).rest()
    const pieces = frames.filter(({ event }) => event === 'answer_delta')
    expect(pieces.length).toBeGreaterThan(50)
    expect([...transcript(frames).values()]).toEqual([count(300)])
  })
}
