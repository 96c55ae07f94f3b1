import { describe, expect, test } from 'vitest'
import { busContract } from '../../../test/contracts/bus.contract.ts'
import { streamsContract } from '../../../test/contracts/streams.contract.ts'
import { fakeClock } from '../../../test/support/clock.ts'
import { localBus } from './bus.ts'

busContract('the local', async () => {
  const bus = localBus()
  return { servers: [bus, bus, bus], dispose: () => bus.close() }
})

const bus = localBus()
streamsContract('the local bus', () => [bus, bus, bus], 200)

describe('the local bus of a server that is not the only one on its store', () => {
  async function polling() {
    const clock = fakeClock()
    const bus = localBus({ clock, poll: 2_000 })
    const rung: string[] = []
    bus.listen((threadId, seq) => {
      expect(seq).toBe(Number.MAX_SAFE_INTEGER) // nobody knows how far the others are
      rung.push(threadId)
    })
    await clock.advance(0)
    return { clock, bus, rung }
  }

  test('looks every now and then at threads that are read, and at no other', async () => {
    const { clock, bus, rung } = await polling()
    const [read, idle] = [bus.tail('read'), bus.tail('idle')]
    const reader = read.reader()
    await clock.advance(1_999)
    expect(rung).toEqual([])
    await clock.advance(1)
    expect(rung).toEqual(['read'])
    await clock.advance(4_000)
    expect(rung).toEqual(['read', 'read', 'read'])
    reader.close()
    await clock.advance(4_000)
    expect(rung).toHaveLength(3)
    expect(idle.readers).toBe(0)
    await bus.close()
  })

  test('looks no more when it is closed', async () => {
    const { clock, bus, rung } = await polling()
    bus.tail('read').reader()
    await bus.close()
    await clock.advance(10_000)
    expect(rung).toEqual([])
  })
})
