import { expect, test } from 'vitest'
import { transcript } from '../../support/chats.ts'
import { find, problem } from '../../support/tools.ts'
import { dataOf, generate, openPage, succeeded, textInput } from '../graphql/support.ts'
import { finished, httpClient, interruptsOf, poster, runBody, userMessage } from '../support.ts'
import { count, paid, type TestCluster, yes } from './support.ts'

export function postgresAway(cluster: () => TestCluster): void {
  test('every wire of every server refuses with 503, nothing is begun, and all goes on when it is back', async () => {
    const [a, b] = cluster().members
    const speaking = await a.chats.start('open', 'tell 400')
    const begun = await speaking.until('answer_delta')
    const [ask] = interruptsOf(await httpClient(a.url, 'pia').say('pay pia'))
    const { interactions } = await a.chats.chat('pia')
    const page = openPage(b.url, { threadId: 'pat' })
    succeeded(await page.say('pay pat'))
    const { interrupt } = page
    const models = cluster().marks('model').length

    await cluster().postgres.crash()
    for (const { url, chats } of cluster().members) await refuses(url, chats)
    const body = { approval_id: ask!.id, approved: true }
    for (const { chats } of cluster().members)
      await away(await chats.approve('pia', interactions[0].id, body))
    const client = httpClient(b.url, 'pia')
    const refused = await client.run(yes(ask!.id)).catch((error: unknown) => error)
    expect(refused).toMatchObject({ status: 503 })
    await page.resolve('yes')
    expect(page.errors.at(-1)).toMatchObject({
      graphQLErrors: [{ extensions: { code: 'NETWORK_ERROR' } }],
    })
    for (const to of ['pia', 'pat']) expect(cluster().marks('pay', to)).toEqual([])
    expect(cluster().marks('model')).toHaveLength(models)

    await cluster().postgres.start()
    const rest = await speaking.rest()
    expect(find(rest, 'interaction_complete').status).toBe('COMPLETED')
    expect([...transcript([...begun, ...rest]).values()]).toEqual([count(400)])
    for (const { chats } of cluster().members) {
      expect((await chats.request('GET', '/chats/new')).status).toBe(404)
      expect((await chats.chat('open')).interactions).toHaveLength(1)
    }
    finished(await client.run(yes(ask!.id)))
    await client.connect()
    expect(client.shown()).toEqual(paid('pia').agui)
    page.interrupt = interrupt
    succeeded(await page.resolve('yes'))
    const fresh = openPage(b.url, { threadId: 'pat' })
    await fresh.load()
    expect(fresh.shown()).toEqual(paid('pat').graphql)
    for (const to of ['pia', 'pat']) expect(cluster().marks('pay', to)).toHaveLength(1)
  }, 120_000)

  /** Every command of every wire, each in its own form of an error. */
  async function refuses(url: string, chats: TestCluster['members'][0]['chats']) {
    const said = { user_message: 'hello' }
    await away(await chats.request('POST', '/chats/new/interactions', said))
    await away(await chats.request('POST', '/chats/open/interactions', said))
    await away(await chats.request('GET', '/chats/open'))
    await away(await chats.request('GET', '/chats'))

    const post = poster(url)
    for (const path of ['/agent/default/run', '/agent/default/connect']) {
      const answer = await post(path, runBody('new', [userMessage('hello')]))
      expect(answer).toMatchObject({ status: 503, json: { code: 'store_unavailable' } })
      expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
    }
    const stop = await post('/agent/default/stop/open', {})
    expect(stop).toMatchObject({ status: 503, json: { code: 'store_unavailable' } })

    // CopilotKit's client reads errors from a 200 only; when to come again is said all the same.
    const told = await generate(url, dataOf([textInput('hello', 'm1')], { threadId: 'new' }))
    expect(told.json.errors).toMatchObject([
      {
        extensions: {
          ...{ code: 'NETWORK_ERROR', statusCode: 503 },
          handrail: { code: 'store_unavailable', retryable: true },
        },
      },
    ])
    expect(Number(told.headers.get('retry-after'))).toBeGreaterThan(0)
    const page = openPage(url, { threadId: 'new' })
    await page.say('hello')
    expect(page.errors).toHaveLength(1)
    expect((await page.load()).error).toBeDefined()
  }

  async function away(answer: Response): Promise<void> {
    expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
    expect(await problem(answer)).toMatchObject({ http: 503, code: 'store_unavailable' })
  }
}
