import type { NewId } from '../lib/ids.ts'
import { messagesOf } from './branch.ts'
import { countedCall } from './counted-call.ts'
import { type Actor, type Draft, draft } from './entries.ts'
import { isRuntimeError, RuntimeError } from './errors.ts'
import type { ClientRules, Denial, Guard, Said } from './guard.ts'
import { type Message, textOf } from './messages.ts'
import type { Model, ModelRequest } from './model.ts'
import type { CallRules } from './model-calls.ts'
import { decide, type Thread } from './thread.ts'

/** What is said, before anything of it is accepted. */
export interface Saying {
  messages: readonly Message[]
  imported: readonly Message[]
  client?: ClientRules
  actor: Actor
  /** What makes the thread, when it is new. */
  creation: Draft[]
  rules: CallRules
}

/** Characters of what was denied that are kept, where any are. */
const keptLength = 4_000

/**
 * What of this may be said. Messages that were refused before stay with clients and come again with the
 * next: they are left out. When the last one is refused, that is recorded and nothing else happens.
 */
export async function admit(thread: Thread, guard: Guard, saying: Saying, newId: NewId) {
  const { state } = thread
  const { messages, client } = saying
  const judging: Said = {
    before: () => messagesOf(state),
    ask: (model, request) => judgement(thread, saying, model, request, newId),
    ...(client && { client }),
  }
  const judge = async (message: Message, more: Partial<Said> = {}): Promise<Denial | undefined> => {
    if (message.role !== 'user' || state.messages.has(message.id)) return undefined
    const known = state.refused.get(message.id)
    if (known) return known
    const denial = await guard.input(message, { ...judging, ...more })
    if (denial) await record(thread, denial, message, saying, guard.redacts ?? false)
    return denial
  }
  const last = messages.at(-1)
  const denied = last && (await judge(last))
  if (denied) {
    const data = { where: 'input', rule: denied.rule }
    throw new RuntimeError('guardrail', denied.reason, { data })
  }
  const passed = async (list: readonly Message[], more?: Partial<Said>) => {
    const verdicts = await Promise.all(
      list.map((one) => (one === last ? undefined : judge(one, more))),
    )
    return list.filter((_, i) => !verdicts[i])
  }
  return {
    messages: await passed(messages),
    imported: await passed(saying.imported, { imported: true }),
  }
}

/** That it was refused, by which rule, and, unless that must not be, what it was. */
async function record(
  thread: Thread,
  { rule, reason }: Denial,
  message: Message,
  { creation, actor }: Saying,
  redacts: boolean,
): Promise<void> {
  const text = textOf(message).slice(0, keptLength)
  const about = { where: 'input', rule, reason, messageId: message.id }
  const value = { ...about, ...(!redacts && { text }) }
  await decide(thread, () => {
    const { state } = thread
    if (state.refused.has(message.id)) return { result: undefined }
    const drafts = [
      ...(state.seq === 0 ? creation : []),
      draft('event', { name: 'guardrail', value }),
    ]
    return { drafts, writing: { guard: unchanged(thread), actor }, result: undefined }
  })
}

/** A new thread is made by one of those who want to. */
const unchanged = ({ state }: Thread) =>
  state.seq === 0 ? { expect: [{ fact: 'active', is: null }] } : {}

/** A model's judgement counts like any other call, and is not to be had when the budget is used up. */
async function judgement(
  thread: Thread,
  { creation, actor, rules }: Saying,
  model: Model,
  request: ModelRequest,
  newId: NewId,
): Promise<string> {
  const signal = AbortSignal.timeout(checkLimit)
  const first = () => (thread.state.seq === 0 ? creation : [])
  let text = ''
  try {
    const call = { model, request, signal, actor, first }
    for await (const event of await countedCall(thread, call, rules, newId))
      if (event.type === 'text') text += event.text
  } catch (error) {
    if (!isRuntimeError(error, 'budget_spent')) throw error
    throw new RuntimeError('guardrail_away', 'The budget of this chat is used up.')
  }
  return text
}

/** Milliseconds that somebody who says something waits for whether it may be said. */
const checkLimit = 15_000
