import type { PolicyRule } from '../../src/core/policy.ts'
import { call, scriptedModel, text } from '../../src/models/scripted.ts'
import type { Settings } from '../../src/settings.ts'
import { chatsClient } from './chats.ts'
import { type ServeOptions, serve } from './serve.ts'
import { find, tools } from './tools.ts'

/** Keys of people: two users, an approver and a chief of the same tenant, an approver of another. */
export const people = {
  ann: 'key-of-ann-0123456',
  bob: 'key-of-bob-0123456',
  carl: 'key-of-carl-012345',
  dora: 'key-of-dora-012345',
  eve: 'key-of-eve-0123456',
} as const
export type Who = keyof typeof people

export const apiKeys = [
  `${people.ann}=ann`,
  `${people.bob}=bob`,
  `${people.carl}=carl:user+approver`,
  `${people.dora}=dora:user+chief`,
  `${people.eve}=other/eve:user+approver+chief`,
].join(',')

/** A server with people who have keys, and an agent that wants to send money, once for each chat. */
export async function office(rule: Partial<PolicyRule> = {}, options: ServeOptions = {}) {
  const box = tools()
  const model = scriptedModel(({ messages }) =>
    messages.at(-1)?.role === 'tool'
      ? [text('So be it.')]
      : [call('1', 'send', { to: 'ann', amount: 5 })],
  )
  const policy: PolicyRule[] = [{ tool: 'send', decision: 'ask', timeout: 60_000, ...rule }]
  const settings: Settings = { model, tools: box.all, builtIns: false, policy }
  const env = { HANDRAIL_API_KEYS: apiKeys, HOST: '127.0.0.1', ...options.env }
  const server = await serve(settings, { ...options, env })
  const people = officeOf(server.url)
  const threadOf = async (clientId = 'c', owner: Who = 'ann') =>
    (await server.server.store.locate({ tenant: 'default', owner, clientId }))!
  return {
    server,
    box,
    ...people,
    threadOf,
    /** As far as it gets without an answer. */
    async waiting(chat = 'c', who: Who = 'ann') {
      const waits = await people.waiting(chat, who)
      await server.recorded(await threadOf(chat, who), 'run.waiting')
      return waits
    },
  }
}

/** People at a server that may be one of many. */
export function officeOf(url: string) {
  const as = (who: Who) => chatsClient(url, { authorization: `Bearer ${people[who]}` })
  return {
    as,
    /** A chat of ann's, or another's, that waits; what is asked, and its stream. */
    async waiting(chat = 'c', who: Who = 'ann') {
      const stream = await as(who).start(chat, 'pay')
      const frames = await stream.until('approval_required')
      const ask = find(frames, 'approval_required').approval_id as string
      return { stream, ask, run: find(frames, 'interaction_started').interaction_id as string }
    },
    // biome-ignore lint/suspicious/noExplicitAny: the wire's JSON, looked into by assertions
    async list(who: Who, query = ''): Promise<any> {
      return await (await as(who).request('GET', `/approvals${query}`)).json()
    },
    decide: (who: Who, ask: string, body: object, more?: Record<string, string>) =>
      as(who).request('POST', `/approvals/${ask}`, body, more),
  }
}
