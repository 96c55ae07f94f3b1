import { expect, test } from 'vitest'
import type { Frame } from '../../support/chats.ts'
import { transcript } from '../../support/chats.ts'
import { find, names } from '../../support/tools.ts'
import { openPage } from '../graphql/support.ts'
import { finished, httpClient } from '../support.ts'
import { count, type TestCluster } from './support.ts'

export function editing(cluster: () => TestCluster): void {
  /** What the thread is, by every wire of every server. */
  async function historyOf(thread: string): Promise<string[]> {
    const told: string[][] = []
    for (const { url, chats } of cluster().members) {
      const agui = httpClient(url, thread)
      await agui.connect()
      const page = openPage(url, { threadId: thread })
      await page.load()
      const { interactions } = await chats.chat(thread)
      const messages = interactions.flatMap((one: Interaction) => [
        `user: ${one.user_message}`,
        ...one.agent_events.flatMap(({ type, content }) =>
          type === 'ANSWER' ? [`assistant: ${content}`] : [],
        ),
      ])
      told.push(agui.shown(), page.shown(), messages)
    }
    for (const one of told) expect(one).toEqual(told[0])
    return told[0]!
  }

  interface Interaction {
    user_message: string
    agent_events: { type: string; content: string }[]
  }

  test('a thread of one server is edited on another, and all servers tell the same of it', async () => {
    const [a, b, c] = cluster().members
    const ids: string[] = []
    for (const said of ['one', 'two', 'three']) {
      const stream = await a.chats.start('edit', said)
      await stream.rest()
      ids.push(stream.response.headers.get('x-interaction-id')!)
    }
    expect(await historyOf('edit')).toHaveLength(6)
    const edited = await (await c.chats.edit('edit', ids[1]!, 'zwei')).rest()
    expect(find(edited, 'answer').content).toBe('re: zwei')
    const then = ['user: one', 'assistant: re: one', 'user: zwei', 'assistant: re: zwei']
    expect(await historyOf('edit')).toEqual(then)

    const page = httpClient(b.url, 'edit')
    await page.connect()
    const [first] = page.agent.messages
    const forwardedProps = { handrail: { branchFrom: first!.id } }
    finished(await page.say('uno', { forwardedProps }))
    expect(await historyOf('edit')).toEqual(['user: uno', 'assistant: re: uno'])
    const branches = await Promise.all(
      cluster().members.map(({ chats }) => chats.chat('edit', '?include=superseded')),
    )
    for (const one of branches) expect(one).toEqual(branches[0])
    expect(branches[0].interactions).toHaveLength(5)
  })

  test('an answer is made again on another server', async () => {
    const [a, b, c] = cluster().members
    await httpClient(a.url, 'again').say('one')
    const page = httpClient(b.url, 'again')
    await page.connect()
    const before = page.agent.messages.at(-1)!.id
    page.agent.setMessages(page.agent.messages.slice(0, 1))
    finished(await page.run())
    expect(page.agent.messages.at(-1)!.id).not.toBe(before)
    expect(await historyOf('again')).toEqual(['user: one', 'assistant: re: one'])
    expect(
      cluster()
        .marks('model', 'one')
        .map(({ server }) => server),
    ).toEqual(['A', 'A', 'B'])
    const { interactions } = await c.chats.chat('again', '?include=superseded')
    expect(interactions).toHaveLength(2)
  })

  test('a reader that changes servers every few frames misses nothing and repeats nothing', async () => {
    const started = await cluster().members[0].chats.start('move', 'tell 400')
    const seen = [(await started.frames.next()).value as Frame]
    const { interaction_id } = seen[0]!.data
    let stream = started
    let moves = 0
    while (seen.at(-1)!.event !== 'interaction_complete') {
      for (let left = 1 + (moves % 12); left > 0; left--) {
        const next = await stream.frames.next()
        if (next.done) break
        seen.push(next.value)
      }
      stream.leave()
      stream = await cluster().members[++moves % 3]!.chats.join(
        'move',
        interaction_id,
        seen.at(-1)!.id,
      )
    }
    stream.leave()
    const pieces = seen.filter(({ event }) => event === 'answer_delta')
    const shown = pieces.map(({ data }) => data.delta).join('')
    expect(names(seen)).not.toContain('retracted')
    expect(count(400).startsWith(shown)).toBe(true)
    expect(moves).toBeGreaterThan(10)
    expect(pieces.length).toBeGreaterThan(40)
    expect([...transcript(seen).values()]).toEqual([count(400)])
    expect(new Set(seen.map(({ id }) => id)).size).toBe(seen.length)
  })
}
