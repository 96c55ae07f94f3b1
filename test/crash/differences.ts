import type { ChatsClient } from '../support/chats.ts'
import { type Reader, Screen } from './reader.ts'

/** Readers that lived through it, or come back with an old cursor, against one that reads it now. */
export async function differences(client: ChatsClient, readers: Reader[]): Promise<string[]> {
  const problems: string[] = []
  const readOn = async (chatId: string, id: string, screen: Screen, last?: string) => {
    const stream = await client.join(chatId, id, last)
    for await (const frame of stream.frames) screen.take(frame)
    return screen
  }
  const compare = (who: string, screen: Screen, now: Screen) => {
    problems.push(...screen.problems.map((problem) => `${who}: ${problem}`))
    if (screen.story === now.story) return
    problems.push(`${who} has\n${screen.story}\nand should have\n${now.story}`)
  }
  const judge = async ({ chatId, interactionId, screen, earlier, last }: Reader) => {
    const who = `${chatId} ${interactionId}`
    const now = await readOn(chatId, interactionId, new Screen())
    // Also when it was over: it may have been taken up again by a request that was not answered.
    await readOn(chatId, interactionId, screen, last)
    compare(who, screen, now)
    for (const then of earlier) {
      const later = await readOn(chatId, interactionId, then.screen, then.last)
      compare(`${who} from ${then.last}`, later, now)
    }
  }
  const rest = readers.values()
  const some = Array.from({ length: 16 }, async () => {
    for (const reader of rest) await judge(reader)
  })
  await Promise.all(some)
  return problems
}
