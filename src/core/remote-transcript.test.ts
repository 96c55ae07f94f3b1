import { expect, test } from 'vitest'
import type { AgentEvent } from './agent.ts'
import { Transcript } from './remote-transcript.ts'

const message = (id: string, text: string): AgentEvent => ({
  type: 'message',
  message: { id, role: 'assistant', parts: [{ type: 'text', text }] },
})
const state = (value: unknown) => ({ type: 'state', state: value }) as unknown as AgentEvent

/** The transcript of a remote leg with these events. */
async function transcriptOf(events: readonly AgentEvent[]): Promise<AgentEvent[] | undefined> {
  const transcript = new Transcript()
  async function* leg() {
    yield* events
    return 'output'
  }
  for await (const _ of transcript.of(leg()));
  return transcript.events()
}

test('the transcript of a remote leg has its messages and its last state', async () => {
  const events = [state(1), message('a', 'One.'), state(2), message('b', 'Two.')]
  expect(await transcriptOf(events)).toEqual([events[2], events[1], events[3]])
})

test('a remote leg that set a state and wrote no message has no transcript', async () => {
  expect(await transcriptOf([state(1)])).toBeUndefined()
})

test('a remote leg whose messages have more than 4,000,000 characters has no transcript', async () => {
  const long = 'x'.repeat(2_100_000)
  expect(await transcriptOf([message('a', long)])).toHaveLength(1)
  expect(await transcriptOf([message('a', long), message('b', long)])).toBeUndefined()
  expect(
    await transcriptOf([message('a', long), message('b', long), message('c', 'end')]),
  ).toBeUndefined()
})
