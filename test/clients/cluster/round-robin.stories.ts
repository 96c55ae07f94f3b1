import { ɵcreateThreadStore } from '@copilotkit/core'
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { chatsClient, type Frame } from '../../support/chats.ts'
import { screen } from '../../support/screen.ts'
import { find } from '../../support/tools.ts'
import { openPage, succeeded, userMessage } from '../graphql/support.ts'
import { coreClient, ending, finished, httpClient, interruptsOf } from '../support.ts'
import { count, paid, type TestCluster, until, yes } from './support.ts'

export function roundRobin(cluster: () => TestCluster): void {
  beforeEach(() => {
    const before = cluster().turns.taken.length
    onTestFinished(() => {
      const targets = cluster()
        .turns.taken.slice(before)
        .map(({ target }) => target)
      expect(new Set(targets).size, 'every server had a part in it').toBe(3)
    })
  })

  test('chats: started, joined with Last-Event-ID again and again, approved, listed, deleted', async () => {
    const chats = chatsClient(cluster().turns.url)
    const started = await chats.start('rita', 'pay rita')
    const seen = await started.until('approval_required')
    started.leave()
    const { interaction_id } = find(seen, 'interaction_started')
    const { approval_id } = find(seen, 'approval_required')
    const events = `/chats/rita/interactions/${interaction_id}/events`
    const rejoin = () => chats.open('GET', events, undefined, { 'last-event-id': seen.at(-1)!.id })
    const waiting = await rejoin()
    const answer = await chats.approve('rita', interaction_id, { approval_id, approved: true })
    expect(answer.status).toBe(200)
    waiting.leave()
    while (seen.at(-1)!.event !== 'interaction_complete') {
      const stream = await rejoin()
      for (let left = 20; left > 0; left--) {
        const next = await stream.frames.next()
        if (next.done) break
        seen.push(next.value as Frame)
      }
      stream.leave()
    }
    expect(screen(seen)).toEqual(screen(await (await chats.join('rita', interaction_id)).rest()))
    expect(cluster().marks('pay', 'rita')).toHaveLength(1)
    const listed = async () => {
      const answer = await chats.request('GET', '/chats')
      return ((await answer.json()) as { chats: { id: string }[] }).chats.map(({ id }) => id)
    }
    expect(await listed()).toContain('rita')
    expect((await chats.request('DELETE', '/chats/rita')).status).toBe(204)
    expect(await listed()).not.toContain('rita')
    for (const _ of cluster().members)
      expect((await chats.request('GET', '/chats/rita')).status).toBe(404)
  })

  test('AG-UI: said, resumed, connected in the middle, stopped', async () => {
    const { url } = cluster().turns
    const first = httpClient(url, 'rob')
    const [interrupt] = interruptsOf(await first.say('pay rob'))
    finished(await first.run(yes(interrupt!.id)))
    const again = httpClient(url, 'rob')
    finished(await again.connect())
    for (const one of [first, again]) expect(one.shown()).toEqual(paid('rob').agui)

    const speaker = await coreClient(url, 'rob')
    await speaker.connect()
    const saying = speaker.say('tell 5000')
    await until(() => speaker.shown().length === 6)
    const watching = again.connect()
    await until(() => again.shown().length === 6)
    speaker.core.stopAgent({ agent: speaker.agent as never })
    for (const stream of await Promise.all([saying, watching]))
      expect(ending(stream)).toMatchObject({ metadata: { handrail: { status: 'cancelled' } } })
    const fresh = await coreClient(url, 'rob')
    await fresh.connect()
    expect(fresh.shown().at(-1)).toBe(again.shown().at(-1))
    expect([...speaker.errors, ...fresh.errors]).toEqual([])
  })

  test('GraphQL: said, resumed, loaded, and streamed piece by piece', async () => {
    const { url } = cluster().turns
    const page = openPage(url, { threadId: 'ron' })
    succeeded(await page.say('pay ron'))
    succeeded(await page.resolve('yes'))
    page.add(userMessage('tell 80'))
    const telling = page.begin()
    await telling.sees('1 2 3')
    expect(telling.seen.at(-1)!.status).toBeUndefined()
    succeeded(await telling.done)
    const whole = [...paid('ron').graphql, 'user: tell 80', `assistant: ${count(80)}`]
    expect(page.shown()).toEqual(whole)
    for (const _ of cluster().members) {
      const other = openPage(url, { threadId: 'ron' })
      expect(await other.load()).toMatchObject({ exists: true })
      expect(other.shown()).toEqual(whole)
    }
    const { data } = await page.agents()
    expect(data.availableAgents.agents.map(({ name }: { name: string }) => name)).toContain(
      'keeper',
    )
  })

  test('CopilotKit: suggestions, and threads listed, renamed, archived and deleted', async () => {
    const { url } = cluster().turns
    const { core, agent, say } = await coreClient(url, 'ruth')
    await say('hello')
    const found = new Promise<readonly object[]>((resolve) => {
      core.subscribe({
        onSuggestionsChanged: ({ suggestions }) => {
          if (suggestions.length > 0 && !suggestions.some((one) => one.isLoading))
            resolve(suggestions)
        },
      })
    })
    core.addSuggestionsConfig({ instructions: 'Suggest.', available: 'always' })
    core.reloadSuggestions('default')
    expect(await found).toMatchObject([{ title: 'Sea' }])
    expect(agent.messages).toHaveLength(2)
    await httpClient(url, 'ray').say('hello')

    const store = ɵcreateThreadStore({ fetch: core.ɵruntimeFetch })
    store.start()
    onTestFinished(() => store.stop())
    const context = { runtimeUrl: `${url}/copilotkit`, agentId: 'default', headers: {} }
    store.setContext({ ...context, limit: 20, includeArchived: true } as never)
    const rows = async () => {
      const answer = await fetch(`${url}/copilotkit/threads?includeArchived=true`)
      const { threads } = (await answer.json()) as { threads: Record<string, unknown>[] }
      return Object.fromEntries(threads.map(({ id, ...row }) => [id, row]))
    }
    /** Each time another server is asked. */
    const everywhere = async (id: string, row: unknown) => {
      for (const _ of cluster().members) expect((await rows())[id]).toEqual(row)
    }
    await store.renameThread('ruth', 'Danube')
    await everywhere('ruth', expect.objectContaining({ name: 'Danube', archived: false }))
    await store.archiveThread('ruth')
    await everywhere('ruth', expect.objectContaining({ name: 'Danube', archived: true }))
    await store.unarchiveThread('ruth')
    await everywhere('ruth', expect.objectContaining({ archived: false }))
    await store.deleteThread('ray')
    await everywhere('ray', undefined)
    expect((await httpClient(url, 'ray').connect()).events).toEqual([])
  })
}
