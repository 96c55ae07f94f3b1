import type { Outlet } from './channel.ts'
import { draft } from './entries.ts'
import type { Leg } from './leg.ts'

/** Takes back what is shown and not whole: nobody will finish it. */
export async function retractOpen(leg: Leg, channel: Outlet, why: string): Promise<void> {
  await channel.commit() // all that was said is shown, or written
  const open = leg.thread.tail.pieces.filter(({ kind }) => kind !== 'output')
  const ids = [...new Set(open.map(({ id, messageId = id }) => messageId))]
  if (ids.length > 0) channel.write(draft('message.retracted', { ids, why }))
}
