import { Client } from 'pg'
import { expect, test } from 'vitest'
import { find } from '../../support/tools.ts'
import { openPage, succeeded } from '../graphql/support.ts'
import { finished, httpClient, interruptsOf } from '../support.ts'
import { count, type TestCluster, until } from './support.ts'

export function secrets(cluster: () => TestCluster): void {
  const bringing = (token: string) => ({ headers: { 'x-vendor-token': token } })
  const goOn = (interruptId: string) => ({
    resume: [{ interruptId, status: 'resolved' as const, payload: 'go' }],
  })

  test('AG-UI: an answer brings its secrets to the server that it comes to, however soon', async () => {
    for (let n = 0; n < 9; n++) {
      const [first, second] = [n, n + 1 + (n % 2)].map((at) => cluster().members[at % 3]!)
      const thread = `sam-${n}`
      const asking = { agentId: 'keeper', ...bringing('sesame-1') }
      const [interrupt] = interruptsOf(await httpClient(first!.url, thread, asking).say(thread))
      const answering = { agentId: 'keeper', ...bringing(`sesame-2-${n}`) }
      const other = httpClient(second!.url, thread, answering)
      finished(await other.run(goOn(interrupt!.id)))
      expect(other.shown().at(-1)).toBe('assistant: It fits.')
      const marks = cluster().marks('secret', `${thread} sesame-2-${n}`)
      expect(marks).toMatchObject([{ server: second!.name }])
    }
  })

  test('GraphQL: so does the answer of a page', async () => {
    const [, b, c] = cluster().members
    const with1 = { threadId: 'sue', agent: 'keeper', ...bringing('sesame-3') }
    const first = openPage(b.url, with1)
    succeeded(await first.say('sue'))
    const other = openPage(c.url, { ...with1, ...bringing('sesame-4') })
    await other.load()
    succeeded(await other.complete())
    succeeded(await other.resolve('go'))
    expect(other.shown().at(-1)).toBe('assistant: It fits.')
    expect(cluster().marks('secret', 'sue sesame-4')).toMatchObject([{ server: 'C' }])
  })

  test('a server that was not given them fails in so many words, and the one that was forgets them', async () => {
    const [a, b] = cluster().members
    const first = httpClient(a.url, 'sid', { agentId: 'keeper', ...bringing('sesame-5') })
    const [interrupt] = interruptsOf(await first.say('sid'))
    const { interactions } = await b.chats.chat('sid')
    const { id } = interactions[0]
    const body = { approval_id: interrupt!.id, answer: 'go' }
    expect((await b.chats.approve('sid', id, body)).status).toBe(200)
    const failed = await (await b.chats.join('sid', id)).rest()
    expect(find(failed, 'error')).toMatchObject({ code: 'authentication' })
    expect(find(failed, 'interaction_complete').status).toBe('FAILED')
    // Over is over everywhere: what the first server was given for this run is not used again.
    const again = await a.chats.open('POST', `/chats/sid/interactions/${id}/retry`)
    expect(find(await again.rest(), 'error')).toMatchObject({ code: 'authentication' })
    const marks = cluster()
      .marks('secret')
      .filter(({ about }) => about.startsWith('sid'))
    expect(marks).toMatchObject([
      { server: 'B', about: 'sid undefined' },
      { server: 'A', about: 'sid undefined' },
    ])
  })

  test('a server that dies takes its secrets along: another goes on without, until they are brought again', async () => {
    const [a, , c] = cluster().members
    const dying = httpClient(a.url, 'stan', { agentId: 'keeper', ...bringing('sesame-6') })
    const cut = dying.say('tell 200').catch((error: unknown) => error)
    await until(() => dying.shown().some((line) => line.includes('1 2 3')))
    const { interactions } = await c.chats.chat('stan')
    const watching = await c.chats.join('stan', interactions[0].id)
    await watching.until('answer_delta')
    await a.kill()
    expect(await cut).toBeInstanceOf(Error)
    const frames = await watching.rest()
    expect(find(frames, 'answer').content).toBe(count(200))
    expect(find(frames, 'error')).toMatchObject({ code: 'authentication' })
    const [mark] = cluster().marks('secret', 'tell 200 undefined')
    expect(mark!.server).not.toBe('A')
    await a.restart()
    const back = httpClient(a.url, 'stan', { agentId: 'keeper', ...bringing('sesame-7') })
    await back.connect()
    await back.say('now')
    expect(back.shown().at(-1)).toBe('assistant: It fits.')
    expect(cluster().marks('secret', 'now sesame-7')).toMatchObject([{ server: 'A' }])
  })

  test('none of them was written down', async () => {
    const client = new Client(cluster().postgres.url)
    await client.connect()
    const { rows } = await client.query('SELECT body, envelope::text FROM handrail.entries')
    await client.end()
    expect(rows.length).toBeGreaterThan(20)
    expect(JSON.stringify(rows)).toContain('It fits.')
    expect(JSON.stringify(rows)).not.toContain('sesame')
  })
}
