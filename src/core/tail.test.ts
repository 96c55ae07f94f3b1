import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Piece } from './agent.ts'
import { Tail, type TailReader } from './tail.ts'

const piece = (id: string, text: string): Piece => ({ kind: 'text', id, text })

/** Takes all that waits, as a reader that keeps up does. */
function takeAll(tail: Tail, reader: TailReader): string {
  const text = tail.pieces
    .slice(reader.offset)
    .map(({ text }) => text)
    .join('')
  reader.offset = tail.pieces.length
  return text
}

describe('a live tail', () => {
  test('gives a late reader everything of what is still open', () => {
    const tail = new Tail()
    tail.begin(1, 'run', 5)
    tail.push(piece('a', 'Hel'))
    tail.push(piece('a', 'lo'))
    expect(takeAll(tail, tail.reader())).toBe('Hello')
  })

  test('forgets a message once it is an entry, and keeps the others', () => {
    const tail = new Tail()
    tail.begin(1, 'run', 5)
    tail.push(piece('a', 'A'))
    tail.push(piece('b', 'B'))
    tail.commit(6, new Set(['a']))
    expect([...tail.open()]).toEqual(['b'])
    tail.commit(7)
    expect(tail.pieces).toEqual([])
  })

  test('closes the input of calls with the message they belong to', () => {
    const tail = new Tail()
    tail.begin(1, 'run', 5)
    tail.push({ kind: 'input', id: 'call', messageId: 'm', name: 't', text: '{' })
    tail.commit(6, new Set(['m']))
    expect(tail.pieces).toEqual([])
  })

  test('tells a reader that was too slow how much it has seen', () => {
    const tail = new Tail()
    tail.begin(1, 'run', 5)
    const reader = tail.reader()
    tail.push(piece('a', 'one '))
    takeAll(tail, reader)
    tail.push(piece('a', 'two'))
    tail.commit(6, new Set(['a']))
    expect(reader.shown.get('text:a')).toBe(4)
    expect(reader.offset).toBe(0)
  })

  test('wakes readers at once for the first piece, then lets a few come together', async () => {
    const tail = new Tail()
    tail.begin(1, 'run', 5)
    const reader = tail.reader()
    const turns = async (count: number) => {
      for (let n = 0; n < count; n++) await new Promise((resolve) => setImmediate(resolve))
    }
    let woken = 0
    const listen = (): void => {
      void reader.wait().then(() => {
        woken++
        listen()
      })
    }
    listen()
    tail.push(piece('a', 'one '))
    await turns(1)
    expect(woken).toBe(1)
    tail.push(piece('a', 'two '))
    await turns(3)
    expect(woken).toBe(1)
    tail.push(piece('a', 'three '))
    await turns(1)
    expect(woken).toBe(2)
    tail.push(piece('a', 'four'))
    tail.flush() // it is about to be written
    await Promise.resolve()
    expect(woken).toBe(3)
    await turns(6)
    expect(woken).toBe(3)
  })

  test('whatever is committed when, a reader that takes now and then misses and repeats nothing', () => {
    const step = fc.oneof(
      fc.record({ do: fc.constant('push' as const), id: fc.constantFrom('a', 'b', 'c') }),
      fc.record({ do: fc.constant('take' as const), id: fc.constant('') }),
      fc.record({ do: fc.constant('close' as const), id: fc.constantFrom('a', 'b', 'c') }),
    )
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const tail = new Tail()
        tail.begin(1, 'run', 0)
        const reader = tail.reader()
        const written = new Map<string, string>()
        const seen = new Map<string, string>()
        let seq = 0
        let count = 0
        const take = () => {
          for (const { id, text } of tail.pieces.slice(reader.offset)) {
            seen.set(id, (seen.get(id) ?? '') + text)
          }
          reader.offset = tail.pieces.length
        }
        for (const { do: what, id } of steps) {
          if (what === 'push') {
            const text = `${count++};`
            tail.push(piece(id, text))
            written.set(id, (written.get(id) ?? '') + text)
          } else if (what === 'take') take()
          else {
            tail.commit(++seq, new Set([id]))
            // The entry has the whole text; the reader was shown a beginning of it, exactly.
            const whole = written.get(id) ?? ''
            expect(whole.slice(0, reader.shown.get(`text:${id}`) ?? 0)).toBe(seen.get(id) ?? '')
            reader.shown.clear()
            written.delete(id)
            seen.delete(id)
          }
        }
        take()
        expect([...seen].sort()).toEqual([...written].sort())
      }),
      { numRuns: 500 },
    )
  })

  test('wakes its readers once for all that is pushed in one turn', async () => {
    const tail = new Tail()
    tail.begin(1, 'run', 0)
    const reader = tail.reader()
    let wakes = 0
    const { wake } = reader
    reader.wake = () => {
      wakes++
      wake.call(reader)
    }
    for (let i = 0; i < 100; i++) tail.push(piece('a', 'x'))
    await reader.wait()
    expect(wakes).toBe(1)
    reader.close()
    expect(tail.readers).toBe(0)
  })
})
