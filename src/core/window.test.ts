import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { anyOf } from '../../test/support/arbitrary.ts'
import { validHistory } from './history.ts'
import { type Message, messageSchema, userText } from './messages.ts'
import type { ModelRequest } from './model.ts'
import { fitted, requestTokens } from './window.ts'

const words = (n: number) => 'word '.repeat(n)
const requestOf = (messages: Message[]): ModelRequest => ({ system: ['s'], messages, tools: [] })
const said = (id: string, text: string): Message => ({
  id,
  role: 'assistant',
  parts: [{ type: 'text', text }],
})
const called = (id: string, output: string): Message[] => [
  { id, role: 'assistant', parts: [{ type: 'call', callId: `c${id}`, name: 't', input: '{}' }] },
  { id: `r${id}`, role: 'tool', callId: `c${id}`, parts: [{ type: 'text', text: output }] },
]
const ids = ({ request }: { request: ModelRequest }) => request.messages.map(({ id }) => id)

describe('a request that must fit', () => {
  const turns = [1, 2, 3, 4].flatMap((n) => [userText(`u${n}`, words(100)), said(`a${n}`, 'yes')])
  const chat = [...turns, userText('u5', 'and now?')]

  test('is left alone when it does', () => {
    expect(fitted(requestOf(chat), 10_000, [])).toMatchObject({ left: 0, cut: 0 })
    expect(fitted(requestOf(chat), 10_000, []).request.system).toEqual(['s'])
  })

  test('loses its oldest turns whole, with some air, and the model is told', () => {
    const result = fitted(requestOf(chat), 400, [])
    expect(ids(result)).toEqual(['u4', 'a4', 'u5'])
    expect(result).toMatchObject({ from: 'u4', left: 6 })
    expect(result.request.system[1]).toContain('The 6 oldest messages')
  })

  test('stays cut where it was cut before, and says nothing new', () => {
    const result = fitted(requestOf(chat), 400, ['u2', 'u4', 'gone'])
    expect(ids(result)).toEqual(['u4', 'a4', 'u5'])
    expect(result.from).toBeUndefined()
  })

  test('loses long results and early steps of its last turn when that alone is too long', () => {
    const steps = [1, 2, 3].flatMap((n) => called(String(n), words(2_000)))
    const result = fitted(requestOf([userText('u', 'go'), ...steps]), 2_000, [])
    expect(ids(result)[0]).toBe('u')
    expect(ids(result).slice(-2)).toEqual(['3', 'r3'])
    expect(result.cut).toBeGreaterThan(0)
    expect(requestTokens(result.request)).toBeLessThan(2_100)
  })

  test('a last message that seems too long by the estimate is sent', () => {
    const request = requestOf([userText('u', words(10_000))])
    expect(fitted(request, 2_000, [])).toEqual({ request, left: 0, cut: 0 })
  })

  test('whatever it holds, what comes out fits or is one step, and is still valid (I8)', () => {
    const anyMessages = fc.array(anyOf(messageSchema), { maxLength: 20 }) as fc.Arbitrary<Message[]>
    const anyRoom = fc.integer({ min: 20, max: 400 })
    fc.assert(
      fc.property(anyMessages, anyRoom, (messages, room) => {
        const request = requestOf(validHistory(messages))
        const out = fitted(request, room, []).request
        expect(validHistory(out.messages)).toEqual(out.messages)
        // A result that still does not fit is one step, which cannot be made shorter.
        const steps = out.messages.filter(({ role }) => role !== 'user' && role !== 'tool')
        if (steps.length > 1)
          expect(requestTokens({ ...out, system: ['s'] })).toBeLessThanOrEqual(room)
      }),
      { numRuns: 300 },
    )
  })
})
