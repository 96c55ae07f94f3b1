import { expect, test } from 'vitest'
import { command, create, seat } from '../../test/support/chained.ts'
import { systemClock } from '../lib/clock.ts'
import { memoryStore } from '../stores/memory/store.ts'
import { type Draft, draft } from './entries.ts'
import { userText } from './messages.ts'

const said = (id: string, text: string): Draft =>
  draft('message.added', { message: userText(id, text), for: 'both' })

test.each<[string, Draft[], string]>([
  ['several user messages', [said('m1', 'First'), said('m2', 'Second')], 'First'],
  ['a user message after a name', [draft('thread.renamed', { title: 'N' }), said('m', 'x')], 'N'],
  ['a name after a user message', [said('m', 'x'), draft('thread.renamed', { title: 'N' })], 'N'],
])(
  'the row of a thread has the title of its state: a transition with %s',
  async (_, drafts, title) => {
    const store = memoryStore({ clock: systemClock })
    const thread = seat(store, 't')
    await create(thread)
    await thread.commit(drafts, command)
    await thread.commit([said('m9', 'Later')], command)
    expect(thread.state.title).toBe(title)
    expect((await store.thread('t'))?.title).toBe(title)
  },
)
