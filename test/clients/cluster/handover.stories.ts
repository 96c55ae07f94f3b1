import { describe, expect, test } from 'vitest'
import { screen } from '../../support/screen.ts'
import { find } from '../../support/tools.ts'
import { openPage, succeeded } from '../graphql/support.ts'
import { finished, httpClient, interruptsOf, toolMessage, userMessage } from '../support.ts'
import { paid, type TestCluster, until, yes } from './support.ts'

export function handover(cluster: () => TestCluster): void {
  const sees = (client: ReturnType<typeof httpClient>, words: string) =>
    until(() => client.shown().some((line) => line.includes(words)))

  /** However it was asked for, given and read: on every server it is the same, and it was done once. */
  async function sameEverywhere(to: string) {
    expect(cluster().marks('pay', to)).toHaveLength(1)
    const chats = await Promise.all(cluster().members.map(({ chats }) => chats.chat(to)))
    for (const chat of chats) expect(chat).toEqual(chats[0])
    expect(chats[0].interactions).toMatchObject([{ status: 'COMPLETED' }])
    for (const { url } of cluster().members) {
      const agui = httpClient(url, to)
      await agui.connect()
      expect(agui.shown()).toEqual(paid(to).agui)
      const page = openPage(url, { threadId: to })
      await page.load()
      expect(page.shown()).toEqual(paid(to).graphql)
    }
  }

  describe('asked on one server, approved on another, watched on the third:', () => {
    test('the chats API', async () => {
      const [a, b, c] = cluster().members
      const asking = await a.chats.start('ann', 'pay ann')
      const asked = await asking.until('approval_required')
      const { interaction_id } = find(asked, 'interaction_started')
      const watching = await c.chats.join('ann', interaction_id)
      const shown = await watching.until('approval_required')
      const { approval_id } = find(shown, 'approval_required')
      const answer = { approval_id, approved: true }
      expect((await b.chats.approve('ann', interaction_id, answer)).status).toBe(200)
      const [first, third] = await Promise.all([asking.rest(), watching.rest()])
      expect(screen([...shown, ...third])).toEqual(screen([...asked, ...first]))
      const late = await b.chats.join('ann', interaction_id)
      expect(screen(await late.rest())).toEqual(screen([...asked, ...first]))
      await sameEverywhere('ann')
    })

    test('AG-UI, by interrupt and resume', async () => {
      const [a, b, c] = cluster().members
      const [interrupt] = interruptsOf(await httpClient(b.url, 'bea').say('pay bea'))
      const page = httpClient(c.url, 'bea')
      await page.connect()
      expect(page.agent.pendingInterrupts).toMatchObject([
        { id: interrupt!.id, message: 'Pay “bea”' },
      ])
      const going = page.run(yes(interrupt!.id))
      await sees(page, '1 2 ')
      const watcher = httpClient(a.url, 'bea')
      const watched = watcher.connect()
      finished(await going)
      finished(await watched)
      expect(page.shown()).toEqual(paid('bea').agui)
      expect(watcher.shown()).toEqual(paid('bea').agui)
      expect(watcher.agent.messages.map(({ id }) => id)).toEqual(
        page.agent.messages.map(({ id }) => id),
      )
      await sameEverywhere('bea')
    })

    test('AG-UI, by a card of the page', async () => {
      const [a, b, c] = cluster().members
      const parameters = { type: 'object' }
      const cards = { tools: [{ name: 'approveAction', description: 'A card', parameters }] }
      const first = httpClient(c.url, 'cem')
      first.agent.addMessage(userMessage('pay cem'))
      finished(await first.run(cards))
      const page = httpClient(a.url, 'cem')
      await page.connect(cards)
      expect(page.shown()).toEqual(first.shown())
      const { id } = lastCall(page.agent.messages)
      page.agent.addMessage(toolMessage(id, { approved: true }))
      const going = page.run(cards)
      await sees(page, '1 2 ')
      const watcher = httpClient(b.url, 'cem')
      finished(await watcher.connect(cards))
      finished(await going)
      await page.connect(cards) // it had put its own words between the server's
      expect(page.shown()).toEqual(watcher.shown())
      const card = (line: string) => line.includes('approveAction(') || line.includes('"state"')
      expect(watcher.shown().filter((line) => !card(line))).toEqual(paid('cem').agui)
      expect(watcher.shown().filter(card)).toHaveLength(2)
      await sameEverywhere('cem')
    })

    test('GraphQL of CopilotKit 1.10', async () => {
      const [a, b, c] = cluster().members
      const first = openPage(a.url, { threadId: 'dan' })
      succeeded(await first.say('pay dan'))
      const page = openPage(b.url, { threadId: 'dan' })
      expect(await page.load()).toMatchObject({ exists: true })
      succeeded(await page.complete())
      expect(page.interrupt).toEqual(first.interrupt)
      const going = page.resolve('yes')
      const status = async () => (await c.chats.chat('dan')).interactions[0].status
      await expect.poll(status, { timeout: 20_000 }).not.toBe('WAITING_APPROVAL')
      const watcher = openPage(c.url, { threadId: 'dan' })
      await watcher.load()
      const watching = watcher.begin()
      await watching.sees('1 2 ')
      succeeded(await going)
      succeeded(await watching.done)
      for (const one of [page, watcher]) expect(one.shown()).toEqual(paid('dan').graphql)
      await sameEverywhere('dan')
    })

    test('by GraphQL, then AG-UI, then the chats API and AG-UI', async () => {
      const [a, b, c] = cluster().members
      const asking = openPage(a.url, { threadId: 'eve' })
      succeeded(await asking.say('pay eve'))
      const { askId } = asking.interrupt!.value
      const { interactions } = await c.chats.chat('eve')
      const chats = await c.chats.join('eve', interactions[0].id)
      const asked = await chats.until('approval_required')
      const answering = httpClient(b.url, 'eve')
      await answering.connect()
      const going = answering.run(yes(askId))
      await sees(answering, '1 2 ')
      const watcher = httpClient(c.url, 'eve')
      const watched = watcher.connect()
      finished(await going)
      finished(await watched)
      const whole = await (await a.chats.join('eve', interactions[0].id)).rest()
      expect(screen([...asked, ...(await chats.rest())])).toEqual(screen(whole))
      for (const one of [answering, watcher]) expect(one.shown()).toEqual(paid('eve').agui)
      // The page that asked did not hear of it: its own yes comes late, and changes nothing.
      succeeded(await asking.resolve('yes'))
      expect(asking.shown()).toEqual(paid('eve').graphql)
      await sameEverywhere('eve')
    })
  })

  test('an answer is carried out by the server that it was given to', () => {
    const done = Object.fromEntries(
      cluster()
        .marks('pay')
        .map(({ about, server }) => [about, server]),
    )
    expect(done).toMatchObject({ ann: 'B', bea: 'C', cem: 'A', dan: 'B', eve: 'B' })
  })

  function lastCall(messages: readonly unknown[]): { id: string } {
    type Called = { toolCalls?: { id: string }[] }
    return (messages as Called[]).findLast(({ toolCalls }) => toolCalls?.length)!.toolCalls!.at(-1)!
  }
}
