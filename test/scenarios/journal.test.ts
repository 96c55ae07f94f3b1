import { expect, test } from 'vitest'
import { text } from '../../src/models/scripted.ts'
import { serve } from '../support/serve.ts'
import { story } from '../support/story.ts'

interface Page {
  entries: { seq: number; kind: string; run?: string; body: unknown; size: number }[]
  next_after: number | null
}

test('the journal of a run is read in pages, in order, and without what is of other runs', async () => {
  const server = await story(({ messages }) => [text(`Answer to ${messages.length}.`)])
  const runs: string[] = []
  for (const words of ['one', 'two', 'x'.repeat(100_000)]) {
    const stream = await server.start('c', words)
    await stream.rest()
    runs.push(stream.response.headers.get('x-interaction-id')!)
  }
  const read = async (query: string) =>
    (await (await server.request('GET', `/threads/c/journal?${query}`)).json()) as Page

  const all = await read('')
  expect(all.entries.map(({ seq }) => seq)).toEqual(all.entries.map((_, i) => i + 1))
  expect(all.next_after).toBeNull()

  const second = await read(`run=${runs[1]}`)
  expect(new Set(second.entries.map(({ run }) => run))).toEqual(new Set([runs[1]]))
  expect(second.entries.map(({ kind }) => kind)).toEqual(
    expect.arrayContaining(['run.queued', 'message.added', 'effect.done', 'run.completed']),
  )

  const paged: Page['entries'] = []
  let after: number | null = 0
  while (after !== null) {
    const page: Page = await read(`run=${runs[1]}&limit=2&after=${after}`)
    expect(page.entries.length).toBeLessThanOrEqual(2)
    paged.push(...page.entries)
    after = page.next_after
  }
  expect(paged).toEqual(second.entries)

  const large = (await read(`run=${runs[2]}`)).entries.filter(({ body }) => body === null)
  expect(large).toMatchObject([{ kind: 'message.added', size: expect.any(Number) }])

  const wrong = await server.request('GET', '/threads/c/journal?limit=0')
  expect([wrong.status, await wrong.json()]).toMatchObject([
    400,
    { error: { field: 'query.limit' } },
  ])
  expect((await server.request('GET', '/threads/c/journal?run=run_nobody')).status).toBe(404)
})

test('a journal is its owner’s alone', async () => {
  const env = { HANDRAIL_API_KEYS: 'ann-has-a-long-key=ann,bob-has-a-long-key=bob:user+approver' }
  const server = await serve({}, { env })
  const as = (key: string) => ({ headers: { authorization: `Bearer ${key}` } })
  const begun = await fetch(`${server.url}/chats/c/interactions`, {
    method: 'POST',
    headers: { ...as('ann-has-a-long-key').headers, 'content-type': 'application/json' },
    body: JSON.stringify({ user_message: 'hello' }),
  })
  await begun.text()
  const read = (key: string) => fetch(`${server.url}/threads/c/journal`, as(key))
  expect((await read('ann-has-a-long-key')).status).toBe(200)
  expect((await read('bob-has-a-long-key')).status).toBe(404)
})
