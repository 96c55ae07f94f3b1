import { call, scriptedModel } from '../../src/models/scripted.ts'
import type { Settings } from '../../src/settings.ts'
import { serve } from './serve.ts'
import { find, tools } from './tools.ts'

export const send = (id: string, amount = 5) => call(id, 'send', { to: 'ann', amount })
export const look = (id: string, at: string) => call(id, 'look', { at })

/** A server whose model plays the steps, with the two tools. */
export async function story(steps: Parameters<typeof scriptedModel>[0], more: Settings = {}) {
  const box = tools()
  const model = scriptedModel(steps)
  const server = await serve({ model, tools: box.all, builtIns: false, ...more })
  return { ...server, ...box, model }
}

/** Starts, and reads up to the first approval. */
export async function asked(server: Awaited<ReturnType<typeof story>>, chat = 'c') {
  const stream = await server.start(chat, 'pay ann')
  const before = await stream.until('approval_required')
  const { interaction_id } = find(before, 'interaction_started')
  const { approval_id } = find(before, 'approval_required')
  return { stream, before, interaction_id, approval_id }
}
