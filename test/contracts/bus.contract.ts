import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { Piece } from '../../src/core/agent.ts'
import type { Bus } from '../../src/core/store.ts'
import type { Tail } from '../../src/core/tail.ts'

export interface OpenedBuses {
  /** Three servers; on a bus for a single one, the same. */
  servers: [Bus, Bus, Bus]
  dispose(): Promise<void>
}

export const piece = (id: string, text: string): Piece => ({ kind: 'text', id, text })

export const textsOf = ({ pieces }: Tail) => pieces.map(({ text }) => text).join('')

const soon = { timeout: 10_000, interval: 2 }

/** What core relies on, with any number of servers. */
export function busContract(name: string, open: () => Promise<OpenedBuses>): void {
  describe(`${name} bus`, () => {
    let a: Bus
    let b: Bus
    let c: Bus
    let dispose: () => Promise<void>

    beforeEach(async () => {
      const opened = await open()
      ;[a, b, c] = opened.servers
      dispose = opened.dispose
    })

    afterEach(async () => {
      await dispose()
    })

    test('shows every server what one of them writes', async () => {
      const written = a.tail('t')
      const tails = [b.tail('t'), c.tail('t')]
      const readers = tails.map((tail) => tail.reader())
      written.begin(1, 'run', 5)
      written.push(piece('m', 'Hel'))
      written.push(piece('m', 'lo'))
      for (const tail of tails) {
        await vi.waitFor(() => expect(textsOf(tail)).toBe('Hello'), soon)
        expect(tail).toMatchObject({ fence: 1, runId: 'run', seq: 5, known: true })
        expect(tail.pieces).toEqual(written.pieces)
      }
      for (const reader of readers) reader.close()
    })

    test('shows it to a reader that comes late, and wakes it for more', async () => {
      const written = a.tail('t')
      written.begin(1, 'run', 5)
      written.push(piece('m', 'Hello'))
      await settled()
      const tail = b.tail('t')
      const reader = tail.reader()
      await vi.waitFor(() => expect(textsOf(tail)).toBe('Hello'), soon)
      reader.offset = tail.pieces.length
      written.push(piece('m', ' there'))
      while (textsOf(tail) !== 'Hello there') await reader.wait()
      reader.close()
    })

    test('keeps all that a piece says, and every piece apart', async () => {
      const pieces: Piece[] = [
        { kind: 'reasoning', id: 'm', text: 'hm' },
        { kind: 'text', id: 'm', text: '' },
        { kind: 'text', id: 'm', text: '\u{1f600}"\\\n\u0000' },
        { kind: 'input', id: 'call', messageId: 'm', name: 'tool', text: '{' },
        { kind: 'input', id: 'call', messageId: 'm', name: 'tool', text: '}' },
        { kind: 'output', id: 'call', name: 'tool', text: '1' },
        { kind: 'output', id: 'call', text: '2' },
      ]
      const written = a.tail('t')
      const tail = b.tail('t')
      const reader = tail.reader()
      written.begin(1, 'run', 5)
      for (const one of pieces) written.push(one)
      await vi.waitFor(() => expect(tail.pieces).toEqual(pieces), soon)
      reader.close()
    })

    test('closes what became an entry, and counts on from what stays open', async () => {
      const written = a.tail('t')
      const tail = b.tail('t')
      const reader = tail.reader()
      written.begin(1, 'run', 5)
      for (const text of ['1', '2']) {
        written.push(piece('m', text))
        written.push(piece('n', text))
      }
      await vi.waitFor(() => expect(tail.pieces).toHaveLength(4), soon)
      reader.offset = 3 // m1 n1 m2
      written.commit(6, new Set(['m']), 1)
      written.push(piece('n', '3'))
      await vi.waitFor(() => expect(textsOf(tail)).toBe('123'), soon)
      expect(tail).toMatchObject({ seq: 6, carried: 2 })
      expect(reader.offset).toBe(1)
      const late = c.tail('t')
      const other = late.reader()
      await vi.waitFor(() => expect(textsOf(late)).toBe('123'), soon)
      expect(late).toMatchObject({ fence: 1, runId: 'run', seq: 6, carried: 2 })
      for (const one of [reader, other]) one.close()
    })

    test('has nothing open once the leg is over, and another server may write the next', async () => {
      const first = a.tail('t')
      const tail = c.tail('t')
      const reader = tail.reader()
      const own = first.reader()
      first.begin(1, 'run', 5)
      first.push(piece('m', 'one'))
      await vi.waitFor(() => expect(textsOf(tail)).toBe('one'), soon)
      first.commit(7, undefined, 1)
      await vi.waitFor(() => expect(tail).toMatchObject({ seq: 7, pieces: [] }), soon)
      const second = b.tail('t')
      second.begin(2, 'run', 7)
      second.push(piece('n', 'two'))
      for (const one of [tail, first]) {
        await vi.waitFor(() => expect(textsOf(one)).toBe('two'), soon)
        expect(one).toMatchObject({ fence: 2, seq: 7 })
      }
      for (const one of [reader, own]) one.close()
    })

    test('keeps threads apart, whatever their ids are', async () => {
      const ids = ['t', 'T', '*', 't*', '{t}', 't}', 'a:b', 'a b', 'ü', '\ud800', '\udfff', '~']
      const long = 'x'.repeat(5_000)
      for (const id of [...ids, long, `${long}y`]) {
        const written = a.tail(id)
        written.begin(1, `run of ${id}`, 5)
        written.push(piece('m', `text of ${id}`))
      }
      for (const id of [...ids, long, `${long}y`]) {
        const tail = b.tail(id)
        const reader = tail.reader()
        await vi.waitFor(() => expect(textsOf(tail)).toBe(`text of ${id}`), soon)
        reader.close()
      }
    })

    test('gives the same tail for the same thread', () => {
      expect(a.tail('t')).toBe(a.tail('t'))
    })

    test('rings here at once, and everywhere soon', async () => {
      const heard: string[] = []
      const stops = [a, b, c].map((bus, i) =>
        bus.listen((threadId, seq) => heard.push(`${i}:${threadId}:${seq}`)),
      )
      a.ring('*', 3)
      expect(heard).toContain('0:*:3')
      await vi.waitFor(() => {
        expect(heard).toContain('1:*:3')
        expect(heard).toContain('2:*:3')
      }, soon)
      await settled()
      expect(heard.filter((one) => one === '0:*:3')).toHaveLength(1)
      for (const stop of stops) stop()
      heard.length = 0
      a.ring('*', 4)
      await settled()
      expect(heard).toEqual([])
    })
  })
}

const settled = () => new Promise((resolve) => setTimeout(resolve, 30))
