import { describe, expect, test } from 'vitest'
import { screen } from '../../support/screen.ts'
import { find, problem } from '../../support/tools.ts'
import { metaEvent, openPage, userMessage as pageMessage, succeeded } from '../graphql/support.ts'
import { finished, httpClient, userMessage } from '../support.ts'
import { paid, type TestCluster, yes } from './support.ts'

export function once(cluster: () => TestCluster): void {
  /** A payment that waits for its approval. */
  async function waiting(to: string) {
    const stream = await cluster().members[0].chats.start(to, `pay ${to}`)
    const asked = await stream.until('approval_required')
    const { interaction_id: id } = find(asked, 'interaction_started')
    const { approval_id } = find(asked, 'approval_required')
    return { stream, asked, id, approval_id }
  }

  test('thirty answers to one approval, over all servers and wires: one wins, and it is done once', async () => {
    const { stream, asked, id, approval_id } = await waiting('olga')
    const page = openPage(cluster().members[1].url, { threadId: 'olga' })
    await page.load()
    succeeded(await page.complete())
    const { text } = page.interrupt!
    const list = [...page.messages]
    const answers = Array.from({ length: 30 }, async (_, n) => {
      const { url, chats } = cluster().members[n % 3]!
      const kind = Math.floor(n / 3) % 3
      if (kind === 0) {
        const answer = await chats.approve('olga', id, { approval_id, approved: true })
        return answer.status === 200 ? 'won' : (await problem(answer)).code
      }
      if (kind === 1) {
        const client = httpClient(url, 'olga')
        const { events } = await client.run(yes(approval_id))
        finished({ events })
        expect(client.shown()).toEqual(paid('olga').agui)
        const late = events.some(
          ({ type, name }) => type === 'CUSTOM' && name === 'handrail:decided',
        )
        return late ? 'ask_settled' : 'won'
      }
      const mine = openPage(url, { threadId: 'olga' })
      mine.messages = list
      succeeded(await mine.complete({ metaEvents: [metaEvent(text, 'yes')] }))
      expect(mine.shown()).toEqual(paid('olga').graphql)
      return 'read'
    })
    const said = await Promise.all(answers)
    const frames = await stream.rest()
    expect(find(frames, 'interaction_complete').status).toBe('COMPLETED')
    expect(said.filter((one) => one === 'won').length).toBeLessThanOrEqual(1)
    expect(said.filter((one) => one !== 'won' && one !== 'read')).toSatisfy((late: string[]) =>
      late.every((one) => one === 'ask_settled'),
    )
    expect(cluster().marks('pay', 'olga')).toHaveLength(1)
    expect(cluster().marks('model', 'pay olga')).toHaveLength(2)
    const whole = await (await cluster().members[2].chats.join('olga', id)).rest()
    expect(screen(whole)).toEqual(screen([...asked, ...frames]))
  })

  describe('an idempotency key that was used on one server', () => {
    test('of a start: another server streams the same interaction', async () => {
      const [a, b, c] = cluster().members
      const key = { 'idempotency-key': 'k1' }
      const first = await a.chats.start('key', 'tell 50', '', key)
      const again = await b.chats.start('key', 'tell 50', '', key)
      const id = first.response.headers.get('x-interaction-id')
      expect(again.response.headers.get('x-interaction-id')).toBe(id)
      expect(screen(await again.rest())).toEqual(screen(await first.rest()))
      const late = await c.chats.start('key', 'tell 50', '', key)
      expect(late.response.headers.get('x-interaction-id')).toBe(id)
      late.leave()
      const other = { user_message: 'tell 51' }
      const refused = await c.chats.request('POST', '/chats/key/interactions', other, key)
      expect(await problem(refused)).toMatchObject({ http: 422, code: 'idempotency_mismatch' })
      expect((await c.chats.chat('key')).interactions).toHaveLength(1)
      expect(cluster().marks('model', 'tell 50')).toHaveLength(1)
    })

    test('of an approval: every server gives the first response again', async () => {
      const { stream, id, approval_id } = await waiting('otto')
      const key = { 'idempotency-key': 'k2' }
      const body = { approval_id, approved: true }
      const answers = []
      for (const { chats } of cluster().members) {
        const answer = await chats.approve('otto', id, body, key)
        answers.push([answer.status, await answer.json()])
      }
      expect(answers[0]![0]).toBe(200)
      expect(answers).toEqual([answers[0], answers[0], answers[0]])
      await stream.rest()
      expect(cluster().marks('pay', 'otto')).toHaveLength(1)
    })
  })

  describe('a message that is known, sent to another server, starts no second run', () => {
    test('by AG-UI', async () => {
      const said = userMessage('tell 40')
      const pages = cluster().members.map(({ url }) => httpClient(url, 'same'))
      for (const { agent } of pages) agent.addMessage(said)
      for (const stream of await Promise.all(pages.map((page) => page.run()))) finished(stream)
      for (const page of pages) expect(page.shown()).toEqual(pages[0]!.shown())
      expect(cluster().marks('model', 'tell 40')).toHaveLength(1)
    })

    test('by GraphQL', async () => {
      const said = pageMessage('tell 41', 'm-1')
      const pages = cluster().members.map(({ url }) => openPage(url, { threadId: 'same-too' }))
      for (const page of pages) page.add(said)
      for (const heard of await Promise.all(pages.map((page) => page.complete()))) succeeded(heard)
      for (const page of pages) expect(page.shown()).toEqual(pages[0]!.shown())
      expect(cluster().marks('model', 'tell 41')).toHaveLength(1)
    })
  })
}
