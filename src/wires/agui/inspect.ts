import { setImmediate } from 'node:timers/promises'
import type { Known } from '../../core/entries.ts'
import type { Thread } from '../../core/thread.ts'
import { isLong } from '../../lib/json-steps.ts'
import type { EventText } from './events.ts'
import { shownMessages } from './snapshot.ts'
import { type Listener, Telling } from './telling.ts'

/** The JSON of the messages as CopilotKit's inspector wants them: calls are flat. In steps, if it is long. */
export async function inspectedMessages(thread: Thread): Promise<string | AsyncIterable<string>> {
  const messages = shownMessages(thread.state, new Set()).map(({ toolCalls, ...message }) => ({
    ...message,
    ...(toolCalls && {
      toolCalls: toolCalls.map(({ id, function: { name, arguments: args } }) => ({
        id,
        name,
        args,
      })),
    }),
  }))
  const body = { messages }
  return isLong(body) ? thread.filledSteps(body) : await thread.filled(JSON.stringify(body))
}

/** Entries that are read, and characters of the events that are made of them. */
const maxEntries = 1_000
const maxCharacters = 4_000_000

/**
 * The JSON of the events of the last entries as a client that was connected received them. The oldest events are left out beyond
 * `maxCharacters`. Yields to other requests between entries: each may hold a large state.
 */
export async function pastEvents(thread: Thread, threadId: string): Promise<string> {
  const events: string[] = []
  let first = 0
  let characters = 0
  const add = async (made: readonly EventText[]) => {
    for (const one of made) {
      const steps = typeof one === 'string' ? [await thread.filled(one)] : thread.filledSteps(one)
      let text = ''
      for await (const step of steps) text += step
      events.push(text)
      characters += text.length
    }
    for (; characters > maxCharacters && first < events.length; first++) {
      characters -= events[first]!.length
      events[first] = ''
    }
  }
  let telling: Telling | undefined
  for await (const entry of lastEntries(thread)) {
    const { kind, runId = '' } = entry
    if (kind === 'run.queued' && !entry.body.behind && (!telling || telling.over)) {
      const to = {
        threadId,
        runId,
        protocol: '0',
        tools: new Set(),
        has: new Map(),
        thoughts: [],
        state: null,
      }
      telling = new Telling(to as Listener, thread, runId)
      await add([telling.started()])
    }
    if (telling && !telling.over) await add(telling.entry(entry))
    if (kind === 'state.patched') await setImmediate()
  }
  return `[${events.slice(first).join()}]`
}

async function* lastEntries(thread: Thread): AsyncGenerator<Known> {
  const { seq } = thread.state
  for (let after = Math.max(0, seq - maxEntries); after < seq; ) {
    const entries = await thread.entries(after, seq - after)
    if (entries.length === 0) return
    yield* entries
    after = entries.at(-1)!.seq
  }
}
