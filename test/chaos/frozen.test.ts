import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { checkThreads } from '../crash/checker.ts'
import { executions } from '../crash/outside.ts'
import { chatsClient } from '../support/chats.ts'
import { receivedBy } from '../support/record.ts'
import { checkTakeovers, takeoversIn } from './takeovers.ts'
import { createWorld, journalOf, leaseMs, type World } from './world.ts'

const nothingTold = { accepted: new Map(), answers: new Map(), deleted: new Set<string>() }

/** Freezes the server that drives the chat for longer than its lease, and lets it wake. */
async function sleepThrough({ seats, register }: World): Promise<void> {
  const { life } = [...register.legs.values()].at(-1)!.at(-1)!
  await seats.find((seat) => seat.life === life)!.freeze(leaseMs + 4_000)
}

test('a driver that slept longer than its lease neither writes nor begins anything when it wakes (I4, I6)', async () => {
  const world = await createWorld(2, {})
  const awake = (n: number) => chatsClient(world.seats[n]!.url!)
  // Eight steps, one effect after another: wherever it falls asleep, another one is next.
  const streams = await Promise.all([0, 1, 2, 3].map((n) => awake(0).start(`c${n}`, `walk #${n}`)))
  await Promise.all(streams.map((stream) => stream.until('tool_call')))
  await sleepThrough(world)
  await sleep(1_000)
  for (const [n, stream] of streams.entries()) {
    const id = stream.response.headers.get('x-interaction-id')!
    for (let asked = 0; asked < 9; asked++) {
      const { interactions } = await awake(1).chat(`c${n}`)
      const [{ status, approvals }] = interactions
      if (status === 'COMPLETED') break
      // Caught in the middle of a call that cannot be repeated, it is a question: the outside knows.
      for (const { approval_id, tool_input } of approvals ?? []) {
        const happened = executions(world.outside).some((one) => one.n === JSON.parse(tool_input).n)
        const said = happened
          ? { outcome: 'happened', result: 'seen: done' }
          : { outcome: 'did_not' }
        await awake(1).approve(`c${n}`, id, { approval_id, ...said })
      }
      await sleep(1_000)
    }
  }
  await Promise.all(world.seats.map((seat) => seat.stop()))
  const threads = await journalOf(world)
  const takeovers = takeoversIn(threads, world.register)
  const numbers = new Map<number, string>()
  const problems = [
    ...world.register.problems,
    ...checkThreads(threads, world.outside, { ...nothingTold, numbers }, receivedBy(world.record)),
    ...checkTakeovers(threads, takeovers, world.outside, world.register),
  ]
  await world.close(problems.length > 0)
  expect(problems, `logs are kept in ${world.directory}`).toEqual([])
  expect(takeovers.filter(({ from }) => from === 'frozen').length).toBeGreaterThan(0)
  const runs = threads.flatMap(({ state }) => [...state.runs.values()])
  expect(runs.map(({ status }) => status)).toEqual([
    'completed',
    'completed',
    'completed',
    'completed',
  ])
}, 120_000)
