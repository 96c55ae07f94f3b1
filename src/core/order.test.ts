import fc from 'fast-check'
import { expect, test } from 'vitest'
import { systemClock } from '../lib/clock.ts'
import type { Piece } from './agent.ts'
import { Channel } from './channel.ts'
import { type Draft, draft } from './entries.ts'
import type { Leg } from './leg.ts'

/** What readers are given, in order: durable entries, and pieces. */
type Given = { entry: string } | { piece: string; text: string }

/** A leg whose store takes its time. */
function slowLeg(given: Given[], turns: Iterator<number>) {
  const commit = async (drafts: readonly Draft[]) => {
    for (let left = turns.next().value ?? 0; left > 0; left--)
      await new Promise((resolve) => setImmediate(resolve))
    for (const { kind, body } of drafts)
      given.push({ entry: kind === 'message.added' ? body.message.id : kind })
  }
  const tail = {
    push: ({ id, text }: Piece) => given.push({ piece: id, text }),
    flush() {},
  }
  const thread = { commit, tail, state: { effects: new Map() } }
  const abort = new AbortController()
  return { thread, abort, lease: { fence: 1 }, runId: 'r', legId: 'l' } as unknown as Leg
}

const act = fc.oneof(
  fc.constant('step' as const),
  fc.constant('whole' as const),
  fc.constant('commit' as const),
  fc.constant('pause' as const),
  fc.integer({ min: 1, max: 6 }), // a message of that many pieces
)

test('what an agent says is heard in the order it says it, and no piece after its message', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(act, { maxLength: 40 }),
      fc.infiniteStream(fc.nat(3)),
      fc.infiniteStream(fc.nat(4)),
      async (acts, turns, pauses) => {
        const given: Given[] = []
        const channel = new Channel(slowLeg(given, turns), systemClock)
        /** For each thing said, how many entries that nobody could have seen go before it. */
        const before = new Map<string, string[]>()
        const unseen: string[] = []
        const pause = async () => {
          if (pauses.next().value === 0) await new Promise((resolve) => setImmediate(resolve))
        }
        for (const [n, one] of acts.entries()) {
          const id = `m${n}`
          const message = { id, role: 'assistant' as const, parts: [] }
          if (one === 'pause') await pause()
          else if (one === 'commit') await channel.commit()
          else if (one === 'step') channel.write(draft('event', { name: 'step.started' }))
          else if (one === 'whole') {
            unseen.push(id)
            channel.write(draft('message.added', { message, for: 'both' }))
          } else {
            before.set(id, [...unseen])
            for (let i = 0; i < one; i++) {
              channel.piece({ kind: 'text', id, text: `${i}` })
              await pause()
            }
            channel.write(draft('message.added', { message, for: 'both' }))
          }
        }
        await channel.commit()
        for (const [place, one] of given.entries()) {
          if (!('piece' in one)) continue
          const earlier = given.slice(0, place)
          const entries = earlier.flatMap((other) => ('entry' in other ? [other.entry] : []))
          expect(entries).not.toContain(one.piece)
          expect(entries).toEqual(expect.arrayContaining(before.get(one.piece)!))
          const shown = earlier.filter((other) => 'piece' in other && other.piece === one.piece)
          expect(one.text).toBe(`${shown.length}`) // none left out, none out of order
        }
      },
    ),
    { numRuns: 300 },
  )
})
