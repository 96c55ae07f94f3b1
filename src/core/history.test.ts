import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { anyJournal, anyOf } from '../../test/support/arbitrary.ts'
import { openAiMessages } from '../wires/chats/interaction.ts'
import { historyFor } from './branch.ts'
import { fold } from './fold.ts'
import { validHistory } from './history.ts'
import { callsOf, type Message, messageSchema, textOf, userText } from './messages.ts'

const anyMessages = fc.array(anyOf(messageSchema), { maxLength: 12 }) as fc.Arbitrary<Message[]>

/** What providers check before they answer; written apart from the code that makes it so. */
function assertProviderAccepts(messages: readonly Message[]): void {
  const calls = new Set<string>()
  for (let i = 0; i < messages.length; i++) {
    const message = messages[i]!
    expect(message.parts.length).toBeGreaterThan(0)
    if (message.role === 'tool') continue
    for (const [n, call] of callsOf(message).entries()) {
      expect(calls.has(call.callId)).toBe(false)
      calls.add(call.callId)
      expect(messages[i + 1 + n]).toMatchObject({ role: 'tool', callId: call.callId })
    }
    const next = messages[i + 1 + callsOf(message).length]
    if (next) expect(next.role).not.toBe('tool')
  }
  if (messages[0]) expect(messages[0].role).not.toBe('tool')
}

describe('validHistory', () => {
  test('whatever was said, a provider accepts what comes out (I8)', () => {
    fc.assert(
      fc.property(anyMessages, (messages) => assertProviderAccepts(validHistory(messages))),
      { numRuns: 300 },
    )
  })

  test('whatever happened on a thread, every run begins with a valid history (I8)', () => {
    fc.assert(
      fc.property(anyJournal, (entries) => {
        const state = fold('t', entries)
        for (const run of state.runs.values()) {
          assertProviderAccepts(validHistory(historyFor(state, run)))
        }
      }),
      { numRuns: 500 },
    )
  })

  test('every leg of a run goes on from what the run said last: effects are known by it', () => {
    fc.assert(
      fc.property(anyJournal, (entries) => {
        const state = fold('t', entries)
        for (const run of state.runs.values()) {
          const said = run.messageIds
            .map((id) => state.messages.get(id)!)
            .filter(({ for: whom, path }) => whom !== 'client' && path === undefined)
          if (said.length > 0) expect(historyFor(state, run).at(-1)).toBe(said.at(-1)!.message)
        }
      }),
      { numRuns: 500 },
    )
  })

  test('changes nothing that is valid already', () => {
    fc.assert(
      fc.property(anyMessages, (messages) => {
        const once = validHistory(messages)
        expect(validHistory(once)).toEqual(once)
      }),
    )
  })

  test('closes a call that was never made, right where it stands', () => {
    const call = { type: 'call', callId: 'c1', name: 'echo', input: '{}' } as const
    const messages: Message[] = [
      userText('u1', 'go'),
      { id: 'a1', role: 'assistant', parts: [call] },
      userText('u2', 'never mind'),
    ]
    const valid = validHistory(messages)
    expect(valid.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'user'])
    expect(valid[2]).toMatchObject({ callId: 'c1', failed: true })
  })

  test('begins the result of an edited call with the arguments that ran, once', () => {
    const call = { type: 'call', callId: 'c1', name: 'echo', input: '{"a":1}' } as const
    const meta = { ranWith: '{"a":2}' }
    const parts = [{ type: 'text', text: 'two' }] as Message['parts']
    const messages: Message[] = [
      userText('u1', 'go'),
      { id: 'a1', role: 'assistant', parts: [call] },
      { id: 't1', role: 'tool', callId: 'c1', parts, meta },
    ]
    const valid = validHistory(validHistory(messages))
    expect(textOf(valid[2]!)).toBe(
      'The approver changed the arguments of this call. It ran with these arguments: {"a":2}\n\ntwo',
    )
    assertProviderAccepts(valid)
    const long = { ...messages[2]!, meta: { ranWith: 'x'.repeat(100_000) } }
    const cut = textOf(validHistory([...messages.slice(0, 2), long])[2]!)
    expect(cut).toContain('(cut: 80000 more characters)')
    expect(cut.length).toBeLessThan(21_000)
  })

  test('puts results in the order of the calls, whatever order they came in', () => {
    const part = (callId: string) => ({ type: 'call', callId, name: 't', input: '{}' }) as const
    const result = (callId: string): Message => ({
      id: `r${callId}`,
      role: 'tool',
      callId,
      parts: [{ type: 'text', text: callId }],
    })
    const valid = validHistory([
      userText('u', 'go'),
      { id: 'a', role: 'assistant', parts: [part('1'), part('2')] },
      result('2'),
      result('1'),
    ])
    expect(valid.map(({ id }) => id)).toEqual(['u', 'a', 'r1', 'r2'])
    expect(openAiMessages(valid)[1]).toMatchObject({
      role: 'assistant',
      content: null,
      tool_calls: [{ id: '1' }, { id: '2' }],
    })
  })
})
