import { expect, test } from 'vitest'
import { office } from '../support/office.ts'
import { find, names, problem } from '../support/tools.ts'

const missing = { http: 404, code: 'ask_not_found' }

test('what an agent asks is in the inboxes of its owner and of the approvers, and nobody else’s', async () => {
  const { waiting, list } = await office()
  const { ask, run } = await waiting()
  const [mine] = (await list('ann')).approvals
  expect(mine).toMatchObject({
    ...{ id: ask, kind: 'approval', state: 'pending', title: 'Send 5 to “ann”', tool: 'send' },
    ...{ agent: 'assistant', owner: 'ann', chat_id: 'c', interaction_id: run },
    ...{ decided_at: null, decided_by: null },
  })
  const [theirs] = (await list('carl')).approvals
  const { chat_id, interaction_id, ...rest } = mine
  expect(theirs).toEqual(rest) // not which chat it is
  expect((await list('bob')).approvals).toEqual([])
  expect((await list('dora')).approvals).toEqual([])
  expect((await list('eve')).approvals).toEqual([])
})

test('an approver decides by the card, and sees nothing else of the chat', async () => {
  const { as, waiting, decide, list, box } = await office()
  const { ask, run, stream } = await waiting()
  const read = await as('carl').request('GET', `/approvals/${ask}`)
  expect(await read.json()).toMatchObject({
    ...{ id: ask, input: { to: 'ann', amount: 5 }, at_timeout: 'reject' },
    card: { title: 'Send 5 to “ann”' },
  })
  for (const path of [
    '/chats/c',
    `/chats/c/interactions/${run}`,
    `/chats/c/interactions/${run}/events`,
  ])
    expect((await as('carl').request('GET', path)).status).toBe(404)
  const body = { approval_id: ask, approved: true }
  expect((await as('carl').approve('c', run, body)).status).toBe(404)

  const done = await decide('carl', ask, { approved: true, reason: 'fine' })
  expect(await done.json()).toMatchObject({ status: 'processed', approved: true, by: 'carl' })
  const frames = await stream.rest()
  expect(names(frames)).toContain('approved')
  expect(find(frames, 'approved').by).toBe('carl')
  expect(box.sent).toEqual([{ to: 'ann', amount: 5 }])
  expect((await list('carl')).approvals).toEqual([])
  const [settled] = (await list('carl', '?state=settled')).approvals
  expect(settled).toMatchObject({ id: ask, state: 'approved', decided_by: 'carl' })
  const after = await (await as('ann').request('GET', `/approvals/${ask}`)).json()
  expect(after).toMatchObject({ decision: { approved: true, by: 'carl', reason: 'fine' } })
})

test('what is not for the caller is as if it were not there', async () => {
  const { as, waiting, decide } = await office()
  const { ask } = await waiting()
  for (const who of ['bob', 'dora', 'eve'] as const) {
    expect(await problem(await as(who).request('GET', `/approvals/${ask}`))).toMatchObject(missing)
    expect(await problem(await decide(who, ask, { approved: true }))).toMatchObject(missing)
  }
  const none = await problem(await decide('carl', 'ask_invented', { approved: true }))
  expect(none).toEqual(await problem(await decide('eve', ask, { approved: true })))
  const nobody = await fetch(`${(await office()).server.url}/approvals`)
  expect(nobody.status).toBe(401)
})

test('the owner of a chat cannot decide what is for a role alone, but can cancel', async () => {
  const { as, waiting, decide, list, server, box, threadOf } = await office({ audience: ['chief'] })
  const { ask, run, stream } = await waiting()
  const thread = await threadOf()
  const before = (await server.journal(thread)).length
  const body = { approval_id: ask, approved: true }
  const refused = await problem(await as('ann').approve('c', run, body))
  expect(refused).toMatchObject({ http: 403, code: 'not_yours_to_decide' })
  expect(await problem(await decide('ann', ask, { approved: true }))).toMatchObject(missing)
  expect(await problem(await decide('carl', ask, { approved: true }))).toMatchObject(missing)
  expect((await list('ann')).approvals).toEqual([])
  expect(await server.journal(thread)).toHaveLength(before)
  expect((await list('dora')).approvals).toMatchObject([{ id: ask, owner: 'ann' }])

  expect((await as('ann').cancel('c', run)).status).toBe(200)
  await stream.rest()
  const late = await problem(await decide('dora', ask, { approved: true }))
  expect(late).toMatchObject({ http: 400, code: 'ask_settled', decision: { state: 'cancelled' } })
  expect(box.sent).toEqual([])
})

test('a second answer is told the first, and the same request again is answered the same', async () => {
  const { waiting, decide, box, stream } = await started()
  const { ask } = waiting
  const key = { 'idempotency-key': 'k1' }
  const first = await decide('carl', ask, { decision: 'approve' }, key)
  expect(first.status).toBe(200)
  const again = await decide('carl', ask, { decision: 'approve' }, key)
  expect(await again.json()).toEqual(await first.json())
  const other = await decide('carl', ask, { decision: 'reject' }, key)
  expect(await problem(other)).toMatchObject({ http: 422, code: 'idempotency_mismatch' })
  const owner = await decide('ann', ask, { decision: 'reject' }, key) // her key is not his
  const recorded = { approval_id: ask, decision: { approved: true, by: 'carl' } }
  expect(await problem(owner)).toMatchObject({ http: 400, code: 'ask_settled', ...recorded })
  await stream.rest()
  expect(box.sent).toHaveLength(1)
})

test('an owner cannot take up the keys of those who decide, nor learn of them', async () => {
  const { as, waiting, decide } = await office()
  const { ask, run, stream } = await waiting()
  const taken = { 'idempotency-key': 'carl k1' }
  const wrong = { approval_id: ask, approved: true, edited_input: { to: 'ann', amount: 1 } }
  await as('ann').request('POST', `/chats/c/interactions/${run}/approve`, wrong, taken)
  await stream.rest()
  const late = await decide('carl', ask, { approved: true }, { 'idempotency-key': 'k1' })
  expect(await problem(late)).toMatchObject({ http: 400, code: 'ask_settled' })
})

test('what a decision says is checked, and what was changed runs as it was changed', async () => {
  const { waiting, decide, box, stream } = await started()
  const { ask } = waiting
  const bad = async (body: object) => (await problem(await decide('carl', ask, body))).field
  expect(await bad({})).toBe('body.approved')
  expect(await bad({ approved: true, decision: 'reject' })).toBe('body.decision')
  expect(await bad({ approved: true, edited_input: { to: 'x', amount: 1_000 } })).toBe(
    'body.edited_input.amount',
  )
  expect(await bad({ approved: true, typo: 1 })).toBe('body.typo')
  // What does not go together is nobody's to interpret.
  expect(await bad({ approved: false, answer: 'it is done' })).toBe('body.approved')
  expect(await bad({ approved: true, answer: 'it is done' })).toBe('body.approved')
  expect(await bad({ approved: false, result: 'it is done' })).toBe('body.result')
  expect(await bad({ approved: true, result: 'it is done' })).toBe('body.result')
  expect(await bad({ outcome: 'did_not' })).toBe('body.outcome')
  expect(await bad({ approved: true, outcome: 'skip' })).toBe('body.outcome')
  await decide('carl', ask, { approved: true, edited_input: { to: 'bob', amount: 1 } })
  await stream.rest()
  expect(box.sent).toEqual([{ to: 'bob', amount: 1 }])
})

test('pages and filters of the inbox', async () => {
  const { waiting, list } = await office()
  const asks: string[] = []
  for (const chat of ['c1', 'c2', 'c3']) asks.push((await waiting(chat)).ask)
  asks.push((await waiting('c1', 'bob')).ask)
  const first = await list('carl', '?limit=3')
  expect(first.approvals).toHaveLength(3)
  const rest = await list('carl', `?limit=3&cursor=${first.next_cursor}`)
  expect(rest.next_cursor).toBeNull()
  const all = [...first.approvals, ...rest.approvals]
  expect(all.map(({ id }) => id)).toEqual(asks) // all have the same time to be answered
  const ids = async (who: 'ann' | 'carl', query: string) =>
    (await list(who, query)).approvals.map(({ id }: { id: string }) => id)
  expect(await ids('ann', '?thread=c2')).toEqual([asks[1]])
  expect(await ids('carl', '?thread=c2')).toEqual([]) // not a chat of his
  expect(await ids('carl', '?tool=send&kind=approval&agent=assistant')).toEqual(asks)
  expect(await ids('carl', '?tool=look')).toEqual([])
  expect(await ids('carl', '?kind=budget')).toEqual([])
  for (const query of ['?limit=0', '?limit=201', '?state=odd', '?kind=client_tool', '?cursor=x'])
    expect((await list('carl', query)).error).toMatchObject({
      field: expect.stringMatching(/^query/),
    })
})

async function started() {
  const all = await office()
  const waiting = await all.waiting()
  return { ...all, waiting, stream: waiting.stream }
}
