import type { ThreadState } from '../../core/state.ts'
import type { Thread } from '../../core/thread.ts'
import { shownMessages } from './snapshot.ts'
import { type Listener, Telling } from './telling.ts'

/** Messages as CopilotKit's inspector wants them: calls are flat. */
export function inspectedMessages(state: ThreadState): object[] {
  return shownMessages(state, new Set()).map(({ toolCalls, ...message }) => ({
    ...message,
    ...(toolCalls && {
      toolCalls: toolCalls.map(({ id, function: { name, arguments: args } }) => ({
        id,
        name,
        args,
      })),
    }),
  }))
}

const most = 1_000

/** The last entries told as they would have been to a client that was there. */
export async function pastEvents(thread: Thread, threadId: string): Promise<object[]> {
  const entries = await thread.entries(Math.max(0, thread.state.seq - most), most)
  const events: string[] = []
  let telling: Telling | undefined
  for (const entry of entries) {
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
      events.push(telling.started())
    }
    if (telling && !telling.over) events.push(...telling.entry(entry))
  }
  return events.map((text) => JSON.parse(text))
}
