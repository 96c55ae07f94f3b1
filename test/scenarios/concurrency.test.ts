import { describe, expect, test } from 'vitest'
import { call, scriptedModel, text } from '../../src/models/scripted.ts'
import { chatsClient } from '../support/chats.ts'
import { gate } from '../support/gate.ts'
import { serve } from '../support/serve.ts'
import { find, names, problem, said, tools } from '../support/tools.ts'

const times = <T>(n: number, make: (i: number) => T): T[] =>
  Array.from({ length: n }, (_, i) => make(i))

/** Pays when told to, and says so. */
const payer = () =>
  scriptedModel((request) => {
    const last = request.messages.at(-1)!
    return last.role === 'user'
      ? [call(`call_${last.id}`, 'send', { to: 'ann', amount: 5 })]
      : [text('Done.')]
  })

async function paying() {
  const box = tools()
  const model = payer()
  const server = await serve({ model, tools: box.all, builtIns: false })
  const ask = async (chat: string) => {
    const stream = await server.start(chat, 'pay')
    const { approval_id } = find(await stream.until('approval_required'), 'approval_required')
    return { stream, approval_id, id: stream.response.headers.get('x-interaction-id')! }
  }
  return { server, box, model, ask }
}

describe('answers to one approval', () => {
  test('fifty at once: one decides, the others hear which, one execution (I2, I3)', async () => {
    const { server, box, ask } = await paying()
    const { stream, approval_id, id } = await ask('c')
    const say = [
      { approved: true },
      { approved: false, reason: 'no' },
      { answer: 'done by hand' },
      { approved: true, edited_input: { to: 'bob', amount: 1 } },
      { stop: true },
    ]
    const responses = await Promise.all(
      times(50, (i) => server.approve('c', id, { approval_id, ...say[i % say.length] })),
    )
    const won = responses.filter(({ status }) => status === 200)
    expect(won).toHaveLength(1)
    const { approved, state, at } = (await won[0]!.json()) as Record<string, unknown>
    for (const lost of responses.filter((one) => one !== won[0])) {
      expect(await problem(lost)).toMatchObject({
        http: 400,
        code: 'ask_settled',
        approval_id,
        decision: { approved, state, at },
      })
    }
    await stream.rest()
    const chosen = say[responses.indexOf(won[0]!) % say.length]!
    const runs = 'approved' in chosen && chosen.approved ? 1 : 0
    expect(box.sent).toHaveLength(runs)
    const entries = await server.journal('c')
    expect(entries.filter(({ kind }) => kind === 'ask.answered')).toHaveLength(1)
  })

  test('the same key many times at once: the same response for all', async () => {
    const { server, box, ask } = await paying()
    const { stream, approval_id, id } = await ask('c')
    const key = { 'idempotency-key': 'decide-1' }
    const body = { approval_id, approved: true }
    const responses = await Promise.all(times(20, () => server.approve('c', id, body, key)))
    expect(responses.map(({ status }) => status)).toEqual(times(20, () => 200))
    const bodies = new Set(await Promise.all(responses.map((one) => one.text())))
    expect(bodies.size).toBe(1)
    await stream.rest()
    expect(box.sent).toHaveLength(1)
  })

  test('the same key for opposite decisions at once: one counts, the other is told of the mix-up', async () => {
    const { server, ask } = await paying()
    for (const round of times(10, (i) => `c${i}`)) {
      const { stream, approval_id, id } = await ask(round)
      const key = { 'idempotency-key': 'k' }
      const decide = (approved: boolean) =>
        server.approve(round, id, { approval_id, approved }, key)
      const both = await Promise.all([decide(true), decide(false)])
      expect(both.map(({ status }) => status).sort()).toEqual([200, 422])
      await stream.rest()
    }
  })

  test('the same key for two approvals at once: one counts, the other is told of the mix-up', async () => {
    const box = tools()
    const pay = (id: string) => call(id, 'send', { to: 'ann', amount: 1 })
    const model = scriptedModel([[pay('1'), pay('2')], [text('Done.')]])
    const server = await serve({ model, tools: box.all, builtIns: false })
    const stream = await server.start('c', 'pay')
    const asks = [
      find(await stream.until('approval_required'), 'approval_required'),
      find(await stream.until('approval_required'), 'approval_required'),
    ]
    const id = stream.response.headers.get('x-interaction-id')!
    const key = { 'idempotency-key': 'k' }
    const decide = ({ approval_id }: { approval_id: string }) =>
      server.approve('c', id, { approval_id, approved: true }, key)
    const both = await Promise.all(asks.map(decide))
    expect(both.map(({ status }) => status).sort()).toEqual([200, 422])
    stream.leave()
  })

  test('against a cancel: either way the run ends cancelled, with at most one execution (I2, I7)', async () => {
    const { server, box, ask } = await paying()
    const seen = new Set<number>()
    // The approval gets a head start of more and more turns of the event loop, until it is over.
    const never = Number.POSITIVE_INFINITY
    for (const headStart of [-1, ...times(30, (i) => i), never]) {
      const round = `c${headStart}`
      const { stream, approval_id, id } = await ask(round)
      const before = box.sent.length
      const cancel = () => server.cancel(round, id)
      const early = headStart < 0 && (await cancel())
      const approving = server.approve(round, id, { approval_id, approved: true })
      if (headStart === never) await approving
      else for (let turn = 0; turn < headStart; turn++) await new Promise(setImmediate)
      const [approved, cancelled] = await Promise.all([approving, early || cancel()])
      const frames = await stream.rest()
      const ran = box.sent.length - before
      const status = frames.at(-1)?.data.status
      if (approved.status === 200) {
        expect(ran).toBeLessThanOrEqual(1)
        // The whole run may be over before the cancel is read.
        if (status === 'COMPLETED') expect([cancelled.status, ran]).toEqual([409, 1])
        else expect([cancelled.status, status]).toEqual([200, 'CANCELLED'])
      } else {
        expect(await problem(approved)).toMatchObject({
          http: 400,
          decision: { state: 'cancelled' },
        })
        expect([cancelled.status, status, ran]).toEqual([200, 'CANCELLED', 0])
        expect(names(frames)).not.toContain('tool_call')
      }
      seen.add(approved.status)
    }
    expect(seen).toEqual(new Set([200, 400])) // both orders were met
  })
})

describe('starts', () => {
  test('the same key many times at once: one run, the same stream for all (I1)', async () => {
    const model = scriptedModel([[text('Hello '), text('there.')]])
    const server = await serve({ model, builtIns: false })
    const key = { 'idempotency-key': 'start-1' }
    const streams = await Promise.all(times(20, () => server.start('c', 'hi', '', key)))
    const all = await Promise.all(streams.map((stream) => stream.rest()))
    const ids = new Set(streams.map(({ response }) => response.headers.get('x-interaction-id')))
    expect(ids.size).toBe(1)
    for (const frames of all) {
      expect(frames[0]?.event).toBe('interaction_started')
      expect(find(frames, 'answer').content).toBe('Hello there.')
      expect(frames.at(-1)?.data.status).toBe('COMPLETED')
    }
    expect(model.requests).toHaveLength(1)

    const again = await (await server.start('c', 'hi', '', key)).rest()
    expect(find(again, 'answer').content).toBe('Hello there.')
    const body = { user_message: 'something else' }
    const other = await server.request('POST', '/chats/c/interactions', body, key)
    expect(await problem(other)).toMatchObject({ http: 422, code: 'idempotency_mismatch' })
    expect((await server.chat('c')).interactions).toHaveLength(1)
  })

  test('two at once on a new chat: one wins, the other is told which one runs', async () => {
    const model = scriptedModel(() => [text('hm'), 'wait'])
    const server = await serve({ model, builtIns: false })
    for (const chat of times(10, (i) => `c${i}`)) {
      const post = (user_message: string) =>
        server.open('POST', `/chats/${chat}/interactions`, { user_message })
      const both = await Promise.all([post('a'), post('b')])
      const won = both.find(({ response }) => response.status === 200)!
      const lost = both.find(({ response }) => response.status !== 200)!
      const id = won.response.headers.get('x-interaction-id')
      expect(await problem(lost.response)).toMatchObject({
        http: 409,
        code: 'thread_busy',
        interaction_id: id,
        status: 'RUNNING',
      })
      expect((await server.chat(chat)).interactions).toMatchObject([{ id }])
      won.leave()
    }
  })

  test('two creations at once: one chat', async () => {
    const server = await serve({ builtIns: false })
    const both = await Promise.all(times(8, () => server.request('POST', '/chats', { id: 'c' })))
    expect(both.map(({ status }) => status).sort()).toEqual([201, ...times(7, () => 409)])
  })

  test('twenty in line run one after the other, in the order they came', async () => {
    const first = gate()
    const model = scriptedModel(async function* (request, n, signal) {
      if (n === 0) await first.pass(signal)
      yield text(`re: ${said(request).at(-1)}`)
    })
    const server = await serve({ model, builtIns: false })
    const running = await server.start('c', 'message 0')
    await first.reached
    const streams = [running]
    for (let i = 1; i <= 20; i++)
      streams.push(await server.start('c', `message ${i}`, '?when_busy=queue'))
    const queued = (await server.chat('c')).interactions.slice(1)
    expect(queued.map((one: { queued?: boolean }) => one.queued)).toEqual(times(20, () => true))
    first.open()
    const all = await Promise.all(streams.map((stream) => stream.rest()))
    for (const [i, frames] of all.entries()) {
      expect(find(frames, 'answer').content).toBe(`re: user: message ${i}`)
      expect(frames.at(-1)?.data.status).toBe('COMPLETED')
    }
    expect(said(model.requests.at(-1)).filter((line) => line.startsWith('user'))).toEqual(
      times(21, (i) => `user: message ${i}`),
    )
    const chat = await server.chat('c')
    expect(chat.interactions.map((one: { user_message: string }) => one.user_message)).toEqual(
      times(21, (i) => `message ${i}`),
    )
  })

  test('many at once with when_busy=queue: each runs once, none at the same time as another', async () => {
    let inside = 0
    let most = 0
    const model = scriptedModel(async function* () {
      most = Math.max(most, ++inside)
      await new Promise((resolve) => setImmediate(resolve))
      yield text('ok')
      inside--
    })
    const server = await serve({ model, builtIns: false })
    const streams = await Promise.all(
      times(20, (i) => server.start('c', `m${i}`, '?when_busy=queue')),
    )
    const all = await Promise.all(streams.map((stream) => stream.rest()))
    expect(all.map((frames) => frames.at(-1)?.data.status)).toEqual(times(20, () => 'COMPLETED'))
    expect(model.requests).toHaveLength(20)
    expect(most).toBe(1)
    const { interactions } = await server.chat('c')
    const said = interactions.map((one: { user_message: string }) => one.user_message)
    expect([...said].sort()).toEqual(times(20, (i) => `m${i}`).sort())
  })

  test('the line has an end', async () => {
    const server = await serve({ model: scriptedModel(() => ['wait']), builtIns: false })
    const streams = [await server.start('c', 'first')]
    let refused: Response | undefined
    while (!refused) {
      const stream = await server.start('c', 'more', '?when_busy=queue')
      if (stream.response.status === 200) streams.push(stream)
      else refused = stream.response
    }
    expect(await problem(refused)).toMatchObject({ http: 409, code: 'thread_busy' })
    expect(streams.length).toBeGreaterThan(20)
    for (const stream of streams) stream.leave()
  })

  test('a message that cancels what runs goes next, and is the only one that runs', async () => {
    const model = scriptedModel((request) =>
      said(request).at(-1) === 'user: stop that' ? [text('Stopped.')] : [text('hm'), 'wait'],
    )
    const server = await serve({ model, builtIns: false })
    const first = await server.start('c', 'go')
    await first.until('answer_delta')
    const second = await server.start('c', 'stop that', '?when_busy=cancel')
    expect((await first.rest()).at(-1)?.data.status).toBe('CANCELLED')
    expect((await second.rest()).at(-1)?.data.status).toBe('COMPLETED')
  })

  test('a stream that is opened before the POST of a new chat returns gets the whole answer', async () => {
    const model = scriptedModel(() => [text('Hello.')])
    const env = { HANDRAIL_API_KEYS: 'ann-has-a-long-key=ann' }
    const { server, url } = await serve({ model, builtIns: false }, { env })
    const ann = chatsClient(url, { authorization: 'Bearer ann-has-a-long-key' })
    const { append } = server.store
    const committed = gate()
    server.store.append = async (...all) => {
      const entries = await append(...all)
      if (all[1][0]?.kind === 'thread.created') await committed.pass()
      return entries
    }
    const posted = ann.start('c', 'Hi')
    await committed.reached
    const { interactions } = await ann.chat('c')
    const early = await ann.join('c', interactions[0].id)
    committed.open()
    const answers = [await (await posted).rest(), await early.rest()]
    expect(answers.map((frames) => find(frames, 'answer').content)).toEqual(['Hello.', 'Hello.'])
    expect(answers.map((frames) => frames.at(-1)?.event)).toEqual(
      times(2, () => 'interaction_complete'),
    )
  })

  test('many chats at once do not meet', async () => {
    const model = scriptedModel((request) => [text(`re: ${said(request).join(' | ')}`)])
    const server = await serve({ model, builtIns: false })
    const answers = await Promise.all(
      times(50, async (i) => {
        const frames = await (await server.start(`c${i}`, `m${i}`)).rest()
        return find(frames, 'answer').content
      }),
    )
    expect(answers).toEqual(times(50, (i) => `re: user: m${i}`))
  })
})
