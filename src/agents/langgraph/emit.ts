import { findHere, type Here } from './here.ts'

/** Shows a state now, in the middle of a node; the node's own result takes its place. */
export async function emitState(state: object): Promise<void> {
  await findHere('emitState').sayState(state)
}

/** Says something now. With `id`, the same message may also be put into the graph's state. */
export async function emitMessage(text: string, { id }: { id?: string } = {}): Promise<string> {
  const here = findHere('emitMessage')
  const messageId = id ?? here.ctx.newId('msg')
  await here.sayText(messageId, text)
  return messageId
}

/** Shows a call to the client, which renders or makes it; nobody waits for a result. */
export async function emitToolCall(name: string, args: object, { id }: { id?: string } = {}) {
  await sayCall(findHere('emitToolCall'), id, name, args)
}

async function sayCall(here: Here, given: string | undefined, name: string, args: unknown) {
  const callId = given ?? here.ctx.newId('call')
  const call = { type: 'call' as const, callId, name, input: JSON.stringify(args ?? {}) }
  const message = { id: `${callId}_message`, role: 'assistant' as const, parts: [call] }
  await here.say({ type: 'message', message, for: 'client' })
}

/** Events that CopilotKit's and AG-UI's helpers for LangGraph dispatch, in all their spellings. */
const known: Record<string, (data: Record<string, unknown>, here: Here) => Promise<void>> = {
  message: async ({ message, message_id: id }, here) =>
    await here.sayText(typeof id === 'string' ? id : here.ctx.newId('msg'), String(message ?? '')),
  tool_call: async ({ id, name, args }, here) =>
    await sayCall(here, typeof id === 'string' ? id : undefined, String(name ?? ''), args),
  state: async (state, here) => await here.sayState(state),
  intermediate_state: async (state, here) => await here.sayState(state),
  exit: async (_data, here) => await here.say({ type: 'event', name: 'Exit', value: {} }),
}

/** An event of a node: one of those, or one that is told as it is. */
export async function emitted(name: string, data: unknown, here: Here): Promise<void> {
  const short = /^(?:copilotkit_)?(?:manually_emit_)?([a-z_]+)$/.exec(name)?.[1] ?? ''
  const ours = name !== short || name === 'exit'
  const tell = ours && Object.hasOwn(known, short) ? known[short] : undefined
  if (tell) return await tell(Object(data) as Record<string, unknown>, here)
  const value: unknown = JSON.parse(JSON.stringify(data ?? null))
  await here.say({ type: 'event', name, value })
}
