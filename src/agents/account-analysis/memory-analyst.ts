import { z } from 'zod'
import type { Agent } from '../../core/agent.ts'
import type { Recall } from '../../core/recall.ts'
import { defineTool } from '../../core/tool.ts'
import { byTool } from './by-tool.ts'

/** Mentions that are given: enough to judge by, few enough for a model to read. */
const most = 10

const history = defineTool({
  name: 'account_history',
  description: 'Finds what was said of an account in earlier chats of the same user.',
  schema: z.strictObject({
    account_id: z.string().min(1).max(64),
    name: z.string().max(200).optional(),
  }),
  access: 'read',
  idempotent: true,
  describe: ({ account_id }) => `Look for ${account_id} in earlier chats`,
  run: async ({ account_id, name }, { recall }) =>
    await recall({ words: [account_id, ...(name ? [name] : [])], limit: most }),
})

interface Snapshot {
  name?: string
  notes?: { at: string | null; text: string }[]
}

/** Recalls what is known of an account from before: earlier chats of the same owner, and notes. */
export const memoryAnalyst = (): Agent => ({
  name: 'memory_analyst',
  description: 'Recalls what was said of an account in your earlier chats, and what is noted of it',
  tools: [history],
  run: (ctx) =>
    byTool<Recall>(ctx, {
      tool: history.name,
      input: (account_id, given) => {
        const { name } = (given.account_snapshot ?? {}) as Snapshot
        return { account_id, ...(name !== undefined && { name }) }
      },
      read: ({ found, cut = false }, account_id, given) => {
        const { notes = [] } = (given.account_snapshot ?? {}) as Snapshot
        const mentions = found.map(({ clientId, at, role, excerpt }) => {
          return { session_id: clientId, at: new Date(at).toISOString(), role, excerpt }
        })
        const sessions = new Set(mentions.map(({ session_id }) => session_id)).size
        const summary =
          mentions.length === 0
            ? `${account_id} was not spoken of in earlier chats`
            : `${account_id} was spoken of ${mentions.length} times in ${sessions} earlier chats`
        const doubt = cut ? ' (not all of them could be looked at)' : ''
        const text = `${summary}${doubt}; ${notes.length} notes.`
        return { output: { account_id, sessions, mentions, cut, notes, summary: text }, text }
      },
    }),
})
