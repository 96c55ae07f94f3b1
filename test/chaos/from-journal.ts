import type { Thread as LiveThread } from '../../src/core/thread.ts'
import { interactionView } from '../../src/wires/chats/projection.ts'
import type { Thread } from '../crash/checker.ts'
import { type Reader, Screen } from '../crash/reader.ts'

/** What every reader has in the end is what the journal says, without any server in between. */
export function unlikeJournal(threads: Thread[], readers: Reader[]): string[] {
  const byId = new Map(threads.map((thread) => [thread.threadId, thread]))
  return readers.flatMap(({ chatId, interactionId, screen }) => {
    const thread = byId.get(chatId)
    if (!thread) return [`${chatId} ${interactionId} was read and is not in the journal`]
    const written = fromJournal(thread, interactionId).story
    if (screen.story === written) return []
    return [`${chatId} ${interactionId} has\n${screen.story}\nand the journal\n${written}`]
  })
}

function fromJournal({ entries, state }: Thread, runId: string): Screen {
  const view = interactionView({ state } as LiveThread, runId)
  const screen = new Screen()
  const none = new Map<string, number>()
  for (const entry of entries) {
    for (const { event = 'message', data } of view.entry(entry, none))
      screen.take({ id: String(entry.seq), event, data: JSON.parse(data) })
    if (view.ends(entry)) break
  }
  return screen
}
