import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test, vi } from 'vitest'
import { type Known, read } from '../../src/core/entries.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { fileStore } from '../../src/stores/file/store.ts'
import { chatsClient, type Frame, transcript } from '../support/chats.ts'
import { temporaryDirectory } from '../support/server.ts'
import { check } from './checker.ts'
import { begin, type Place, placeIn } from './life.ts'
import { executions } from './outside.ts'
import type { Told } from './person.ts'

// A story that does not go on is a failure, and not one to wait ten minutes for.
vi.setConfig({ testTimeout: 120_000 })

const nothingTold: Told = {
  ...{ accepted: new Map(), answers: new Map() },
  ...{ deleted: new Set(), numbers: new Map() },
}

/** A place of its own; at the end of the story its journal is checked, and read. */
async function story(tell: (place: Place) => Promise<void>): Promise<Known[]> {
  const directory = await temporaryDirectory()
  const place = placeIn(directory.path)
  await tell(place)
  expect(await check(place.data, place.outside, nothingTold)).toEqual([])
  const store = await fileStore({ directory: place.data, clock: systemClock })
  const entries = await store.read('chat', { limit: 1e6 })
  await store.close()
  await directory.remove()
  return entries.map(read)
}

/** Starts `text` on a server that dies at `crash`; the frames that arrived, and the interaction. */
async function dieOf(crash: string, place: Place, text: string, env = {}) {
  const server = await begin(place, env, crash)
  const stream = await chatsClient(server.url).start('chat', text)
  const frames: Frame[] = []
  try {
    for await (const frame of stream.frames) frames.push(frame)
  } catch {}
  expect((await server.exited).signal).toBe('SIGKILL')
  return { id: stream.response.headers.get('x-interaction-id')!, frames }
}

/** A server that lives until the story has gone on. */
async function goOn<T>(
  place: Place,
  tell: (client: ReturnType<typeof chatsClient>) => Promise<T>,
  env = {},
): Promise<T> {
  const server = await begin(place, env)
  try {
    return await tell(chatsClient(server.url))
  } finally {
    await server.stop()
  }
}

/** The open question of the interaction, once there is one. */
async function question(client: ReturnType<typeof chatsClient>, id: string) {
  for (let n = 0; n < 200; n++) {
    const { interactions } = await client.chat('chat')
    const one = interactions.find((interaction: { id: string }) => interaction.id === id)
    if (one?.approvals) return one.approvals[0]
    await sleep(25)
  }
  throw new Error('nothing is asked')
}

const last = (frames: Frame[]) => frames.at(-1)?.data.status
const results = (frames: Frame[]) =>
  frames.filter(({ event }) => event === 'tool_result').map(({ data }) => data.tool_output)
const times = (entries: Known[], kind: string) => entries.filter((one) => one.kind === kind).length

async function approve(place: Place, id: string) {
  return await goOn(place, async (client) => {
    const { approval_id } = await question(client, id)
    const response = await client.approve('chat', id, { approval_id, approved: true })
    expect(response.status).toBe(200)
    return await (await client.join('chat', id)).rest()
  })
}

test('approved after a crash while waiting, a call is made once', async () => {
  const entries = await story(async (place) => {
    const { id } = await dieOf('run.waiting:1', place, 'approve #1')
    const frames = await approve(place, id)
    expect(last(frames)).toBe('COMPLETED')
    expect(results(frames)).toEqual(['count 100: done'])
    expect(executions(place.outside)).toHaveLength(1)
  })
  expect(times(entries, 'ask.raised')).toBe(1)
})

test('an answer that was recorded and not carried out is carried out once', async () => {
  await story(async (place) => {
    const first = await begin(place, {}, 'ask.answered:1')
    const client = chatsClient(first.url)
    const stream = await client.start('chat', 'approve #1')
    const id = stream.response.headers.get('x-interaction-id')!
    const asked = (await stream.until('approval_required')).at(-1)!.data
    const answer = { approval_id: asked.approval_id, approved: true }
    await expect(client.approve('chat', id, answer)).rejects.toThrow()
    await first.exited
    expect(executions(place.outside)).toHaveLength(0)
    await goOn(place, async (later) => {
      const frames = await (await later.join('chat', id)).rest()
      expect(last(frames)).toBe('COMPLETED')
      const again = await later.approve('chat', id, answer)
      expect(again.status).toBe(400)
      expect(await again.json()).toMatchObject({ error: { decision: { state: 'approved' } } })
    })
    expect(executions(place.outside)).toHaveLength(1)
  })
})

test.each([
  [{ outcome: 'happened', result: 'it says 100' }, 'it says 100', 1],
  [{ outcome: 'did_not' }, 'count_free 100: done', 2],
  [{ outcome: 'skip' }, expect.stringContaining('it was skipped'), 1],
])('a call that may have happened is asked about: %j', async (answer, result, count) => {
  const directory = await temporaryDirectory()
  const place = placeIn(directory.path)
  const { id } = await dieOf('effect.ran:2', place, 'free #1')
  const frames = await goOn(place, async (client) => {
    const asked = await question(client, id)
    expect(asked).toMatchObject({ kind: 'in_doubt', tool_name: 'count_free' })
    expect(asked.card).toMatchObject({ effect_id: expect.stringMatching(/^eff_/) })
    expect(executions(place.outside)).toHaveLength(1)
    await client.approve('chat', id, { approval_id: asked.approval_id, ...answer })
    return await (await client.join('chat', id)).rest()
  })
  expect(results(frames)).toEqual([result])
  expect(last(frames)).toBe('COMPLETED')
  const marks = executions(place.outside)
  expect(marks).toHaveLength(count)
  expect(new Set(marks.map(({ effectId }) => effectId)).size).toBe(1)
  await directory.remove()
})

test('an idempotent call is simply made again, with the same effect id', async () => {
  const entries = await story(async (place) => {
    const { id } = await dieOf('effect.ran:2', place, 'safe #1')
    const frames = await goOn(place, async (client) => (await client.join('chat', id)).rest())
    expect(results(frames)).toEqual(['count_safe 100: done'])
    const marks = executions(place.outside)
    expect(marks).toHaveLength(2)
    expect(marks[0]!.effectId).toBe(marks[1]!.effectId)
  })
  expect(times(entries, 'ask.raised')).toBe(0)
})

test('half a text is taken back, and a reader with an old cursor ends with the whole', async () => {
  await story(async (place) => {
    const { id, frames } = await dieOf('model.pieces:3', place, 'text 200')
    const half = [...transcript(frames).values()]
    expect(half).toHaveLength(1)
    await goOn(place, async (client) => {
      const rest = await (await client.join('chat', id, frames.at(-1)!.id)).rest()
      const fresh = await (await client.join('chat', id)).rest()
      expect(transcript([...frames, ...rest])).toEqual(transcript(fresh))
      const [whole] = transcript(fresh).values()
      expect(whole).toMatch(/^w0 w1 .*w199 end\.$/)
      expect(rest.some(({ event }) => event === 'retracted')).toBe(true)
    })
  })
})

test('a message whose acceptance was not heard of, said again with its key, is one run', async () => {
  const entries = await story(async (place) => {
    const key = { 'idempotency-key': 'once' }
    const first = await begin(place, {}, 'key.used:1')
    await expect(chatsClient(first.url).start('chat', 'free #1', '', key)).rejects.toThrow()
    await first.exited
    await goOn(place, async (client) => {
      const frames = await (await client.start('chat', 'free #1', '', key)).rest()
      expect(last(frames)).toBe('COMPLETED')
      expect((await client.chat('chat')).interactions).toHaveLength(1)
    })
    expect(executions(place.outside)).toHaveLength(1)
  })
  expect(times(entries, 'key.used')).toBe(1)
})

test('a deadline that passes while the server is down fires once, at its start', async () => {
  const env = { CRASH_ASK_TIMEOUT: '300' }
  const entries = await story(async (place) => {
    const { id } = await dieOf('run.waiting:1', place, 'approve #1', env)
    await sleep(350)
    const frames = await goOn(place, async (client) => (await client.join('chat', id)).rest(), env)
    expect(results(frames)).toEqual(['Nobody approved this call in time. It was not run.'])
    expect(last(frames)).toBe('COMPLETED')
    await goOn(place, () => sleep(100), env)
    expect(executions(place.outside)).toHaveLength(0)
  })
  expect(times(entries, 'ask.answered')).toBe(1)
})

test('a run that crashes the server every time is ended, and the next in line begins', async () => {
  const entries = await story(async (place) => {
    const first = await begin(place, {}, 'model.pieces:1')
    const client = chatsClient(first.url)
    const doomed = await client.start('chat', 'slow 200')
    const id = doomed.response.headers.get('x-interaction-id')!
    const second = await client.start('chat', 'text 3', '?when_busy=queue')
    const next = second.response.headers.get('x-interaction-id')!
    await first.exited
    for (let n = 1; n <= 10; n++) {
      const server = await begin(place, {}, 'model.pieces:1').catch(() => undefined)
      if (server) expect((await server.exited).signal).toBe('SIGKILL')
    }
    await goOn(place, async (client) => {
      const frames = await (await client.join('chat', id)).rest()
      expect(last(frames)).toBe('FAILED')
      expect(frames.at(-2)!.data.error).toContain('10 times')
      expect(last(await (await client.join('chat', next)).rest())).toBe('COMPLETED')
    })
  })
  const recovered = entries.filter(
    (entry) => entry.kind === 'run.queued' && entry.body.why === 'recover',
  )
  expect(recovered).toHaveLength(10)
})

test('a stop in the middle of a text leaves no half answer', async () => {
  await story(async (place) => {
    const first = await begin(place, { HANDRAIL_DRAIN_MS: '10' })
    const stream = await chatsClient(first.url).start('chat', 'slow 60')
    const id = stream.response.headers.get('x-interaction-id')!
    const frames = await stream.until('answer_delta')
    stream.leave()
    await first.stop()
    await goOn(place, async (client) => {
      const rest = await (await client.join('chat', id, frames.at(-1)!.id)).rest()
      const [whole, ...more] = transcript([...frames, ...rest]).values()
      expect(more).toEqual([])
      expect(whole).toMatch(/^w0 w1 .*w59 end\.$/)
    })
  })
})

test('a stop in the middle of a call that cannot be repeated makes it a question', async () => {
  await story(async (place) => {
    const env = { HANDRAIL_DRAIN_MS: '10' }
    const first = await begin(place, env)
    const client = chatsClient(first.url)
    const stream = await client.start('chat', 'long #1')
    const id = stream.response.headers.get('x-interaction-id')!
    const asked = (await stream.until('approval_required')).at(-1)!.data
    await client.approve('chat', id, { approval_id: asked.approval_id, approved: true })
    await stream.until('tool_output')
    stream.leave()
    await first.stop()
    await goOn(place, async (later) => {
      const doubt = await question(later, id)
      expect(doubt).toMatchObject({ kind: 'in_doubt' })
      const answer = { approval_id: doubt.approval_id, outcome: 'happened', result: 'seen' }
      await later.approve('chat', id, answer)
      expect(last(await (await later.join('chat', id)).rest())).toBe('COMPLETED')
    })
    expect(executions(place.outside)).toHaveLength(1)
  })
})

test('a run taken up again after it failed is read to its real end', async () => {
  await story(async (place) => {
    const { id } = await dieOf('run.failed:1', place, 'fail #1')
    await goOn(place, async (client) => {
      const path = `/chats/chat/interactions/${id}/retry`
      await (await client.open('POST', path)).rest()
      const fresh = await (await client.join('chat', id)).rest()
      const ends = fresh.map(({ event }) => event).filter((event) => /error|complete/.test(event))
      expect(ends).toEqual(['error', 'error', 'interaction_complete'])
    })
  })
})
