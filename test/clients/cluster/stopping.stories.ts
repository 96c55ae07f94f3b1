import { describe, expect, test } from 'vitest'
import { chatsClient } from '../../support/chats.ts'
import { find, names } from '../../support/tools.ts'
import { openPage, succeeded, userMessage } from '../graphql/support.ts'
import { ending, httpClient, poster } from '../support.ts'
import { count, pause, type TestCluster, until } from './support.ts'

export function stopping(cluster: () => TestCluster): void {
  /** A long answer that the first server gives, and two readers of it on the third. */
  async function speaking(chat: string) {
    const [a, , c] = cluster().members
    const stream = await a.chats.start(chat, 'tell 5000')
    const { interaction_id: id } = find(await stream.until('answer_delta'), 'interaction_started')
    const watching = await chatsClient(c.url).join(chat, id)
    const agui = httpClient(c.url, chat)
    const connecting = agui.connect()
    await until(() => agui.shown().some((line) => line.includes('1 2 3')))
    /** Everyone was told that it was cancelled, soon, and has the same words; no more are said. */
    const over = async () => {
      const since = Date.now()
      const [mine, theirs] = await Promise.all([stream.rest(), watching.rest()])
      const ended = await connecting
      expect(Date.now() - since).toBeLessThan(4_000) // later, others would have ended it for the driver
      for (const frames of [mine, theirs]) {
        expect(find(frames, 'interaction_complete').status).toBe('CANCELLED')
        expect(names(frames)).not.toContain('retracted')
      }
      expect(ending(ended)).toMatchObject({ outcome: { type: 'cancelled' } })
      const chats = await Promise.all(cluster().members.map((one) => one.chats.chat(chat)))
      for (const { interactions } of chats)
        expect(interactions[0]).toEqual(chats[0].interactions[0])
      const said = `assistant: ${find(mine, 'answer').content}`
      expect(agui.shown().at(-1)).toBe(said)
      expect(count(5_000).startsWith(said.slice(11))).toBe(true)
    }
    return { id, over }
  }

  describe('a run of one server, stopped on another, ends at once on all:', () => {
    test('by the chats API', async () => {
      const { id, over } = await speaking('chats')
      const answer = await cluster().members[1].chats.cancel('chats', id)
      expect(await answer.json()).toMatchObject({ status: 'cancelling' })
      await over()
    })

    test('by AG-UI', async () => {
      const { over } = await speaking('agui')
      const { json } = await poster(cluster().members[1].url)('/agent/default/stop/agui', {})
      expect(json).toMatchObject({ stopped: true })
      await over()
    })

    test('by a page of GraphQL that is closed, after the grace', async () => {
      const { over } = await speaking('graphql')
      const page = openPage(cluster().members[1].url, { threadId: 'graphql' })
      await page.load()
      const joining = page.begin()
      await joining.sees('1 2 3')
      joining.stop()
      await over()
    })

    test('by a message of GraphQL, which goes next', async () => {
      const { over } = await speaking('next')
      const page = openPage(cluster().members[1].url, { threadId: 'next' })
      await page.load()
      const saying = page.say('hello')
      await over()
      succeeded(await saying)
      expect(page.shown().at(-1)).toBe('assistant: re: hello')
    })
  })

  test('a page that is closed on one server and comes back on another keeps its run', async () => {
    const [a, b, c] = cluster().members
    const page = openPage(a.url, { threadId: 'reload' })
    page.add(userMessage('tell 250'))
    const watching = page.begin()
    await watching.sees('1 2 3')
    watching.stop()
    const back = openPage(b.url, { threadId: 'reload' })
    await back.load()
    await pause(400) // the grace is over
    const joining = back.begin()
    succeeded(await joining.done)
    expect(back.shown()).toEqual(['user: tell 250', `assistant: ${count(250)}`])
    const { interactions } = await c.chats.chat('reload')
    expect(interactions).toMatchObject([{ status: 'COMPLETED' }])
  })
}
