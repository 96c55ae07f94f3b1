import { expect, test } from 'vitest'
import type { Piece } from '../../core/agent.ts'
import { decode, encode } from './messages.ts'

test('pieces reach other servers with the tool of a call and the path of a text', () => {
  const pieces: Piece[] = [
    { kind: 'text', id: 'm1', path: 'a/b', text: 'One ' },
    { kind: 'text', id: 'm1', path: 'a/b', text: 'two.' },
    { kind: 'text', id: 'm2', text: 'Three.' },
    { kind: 'reasoning', id: 'm3', path: 'c', text: 'Hm.' },
    { kind: 'input', id: 'c1', messageId: 'm3', name: 'look', text: '{}' },
  ]
  const message = { fence: 1, number: 2, changes: [{ type: 'pieces' as const, pieces }] }
  expect(decode(encode(message))).toEqual(message)
})
