import { expect, test } from 'vitest'
import { lastUserContents } from '../approve.ts'
import { listed } from './messages.ts'
import type { MessageInput } from './shapes.ts'

let count = 0
const message = (more: Partial<MessageInput>): MessageInput => ({
  ...{ id: `m${count++}`, createdAt: new Date(count) },
  ...more,
})
const text = (role: 'user' | 'assistant' | 'system' | 'developer', content: string) =>
  message({ textMessage: { role, content } })
const user = (content: string) => text('user', content)
const image = (bytes: string) => message({ imageMessage: { format: 'png', bytes, role: 'user' } })
const call = () => message({ actionExecutionMessage: { name: 'look', arguments: '{}' } })
const result = () =>
  message({ resultMessage: { actionExecutionId: 'a', actionName: 'look', result: 'Blue.' } })
const state = () =>
  message({
    agentStateMessage: {
      ...{ threadId: 'c', agentName: 'a', nodeName: 'n', runId: 'r', role: 'assistant' as const },
      ...{ state: '{}', running: false, active: false },
    },
  })
const contents = (...list: MessageInput[]) => lastUserContents(listed(list))

test.each<[string, MessageInput[], MessageInput[]]>([
  ['with new ids', [user('hi')], [user('hi')]],
  ['below its first copy', [user('hi')], [user('hi'), user('hi')]],
  ['after a part of the answer', [user('hi')], [user('hi'), text('assistant', 'He'), user('hi')]],
  [
    'with a part of the answer',
    [user('hi')],
    [user('hi'), call(), result(), text('assistant', '')],
  ],
  ['with new ids of its history', [user('a'), call(), user('b')], [user('a'), call(), user('b')]],
  ['with other instructions', [user('hi')], [text('system', 'x'), user('hi'), state()]],
  ['with an image', [user('hi'), image('AA')], [user('hi'), text('developer', 'x'), image('AA')]],
])('a GraphQL message that is sent again %s has the same digest', (_, first, again) => {
  expect(contents(...first)).toEqual(contents(...again))
})

test.each<[string, MessageInput[], MessageInput[]]>([
  ['another text', [user('hi')], [user('hello')]],
  ['another image', [user('hi'), image('AA')], [user('hi'), image('BB')]],
  ['one message more', [user('a')], [user('a'), user('b')]],
  ['a text in place of an image', [user('AA')], [image('AA')]],
  ['a new message after an answer', [user('a')], [user('a'), text('assistant', 'x'), user('b')]],
])('a GraphQL request with %s has another digest', (_, first, other) => {
  expect(contents(...first)).not.toEqual(contents(...other))
})
