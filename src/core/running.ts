import type { NewId } from '../lib/ids.ts'
import { pauseBefore } from '../lib/pause.ts'
import { admit } from './admit.ts'
import { missing, type StartingBudget } from './agent-setups.ts'
import { type Access, actorOf, type Caller, nameOf } from './callers.ts'
import { cancel } from './cancel.ts'
import type { AgentSetup } from './context.ts'
import { type Draft, draft, type RunOptions } from './entries.ts'
import { RuntimeError } from './errors.ts'
import type { ClientRules, Guard } from './guard.ts'
import { keyUnused, type RequestKey, usedKey } from './keys.ts'
import type { Message } from './messages.ts'
import { refuseMedia } from './model.ts'
import type { CallRules } from './model-calls.ts'
import { noteReturn } from './returned.ts'
import type { RunSecrets } from './secrets.ts'
import { creation, retry, type Start, start } from './start.ts'
import type { RunStatus } from './state.ts'
import { decide, type Thread } from './thread.ts'

export interface StartRequest {
  messages: readonly Message[]
  imported?: readonly Message[]
  state?: { value: unknown }
  agent?: string
  whenBusy?: 'reject' | 'queue' | 'cancel'
  replaces?: string
  instead?: string
  results?: Start['results']
  request?: string
  key?: { key: string; digest: string }
  options?: RunOptions
  /** The client's own rules for what is said. */
  rules?: ClientRules
}

export interface CreateRequest {
  agent?: string
  title?: string
  key?: RequestKey
}

interface Setup extends Pick<Access, 'find' | 'upToDate' | 'withThread'> {
  setups: { get(agent: string): AgentSetup | undefined }
  /** The agent of those who name none. */
  first: () => string
  budgetOf: (agent: string) => StartingBudget
  rules: CallRules
  guard?: Guard | undefined
  secrets: RunSecrets
  newId: NewId
  closing: AbortSignal
  ringHere: (thread: Thread) => void
}

/** What begins runs and ends them. Durable when it resolves. */
export function running({ setups, rules, guard, secrets, newId, ...setup }: Setup) {
  const { find, upToDate, withThread, budgetOf, closing, ringHere } = setup

  const setupOf = (name: string | undefined) => {
    const wanted = name ?? setup.first()
    return setups.get(wanted) ?? missing(wanted)
  }

  return {
    /** Accepts a message on a thread, made if it is new. Durable when it resolves. */
    async start(caller: Caller, clientId: string, request: StartRequest) {
      if (closing.aborted) throw new RuntimeError('stopping', undefined, { retryAfter: 2 })
      const { agent: entry, model } = setupOf(request.agent)
      const agent = entry.name
      const { whenBusy = 'reject', agent: _, rules: client, ...rest } = request
      await pauseBefore(Object.keys(request.options?.forwarded ?? {}).length)
      const brought = request.options && secrets.split(request.options, clientId)
      const key = rules.keyHeader && request.options?.headers?.[rules.keyHeader]
      if (brought) rest.options = { ...brought.options, ...(key && { clientKey: true }) }
      refuseMedia([...(request.imported ?? []), ...request.messages], model)
      const governor = budgetOf(agent)
      await pauseBefore(request.messages.length + (request.imported?.length ?? 0))
      const { thread, result } = await withThread(caller, clientId, async (thread) => {
        const name = nameOf(caller, clientId)
        const actor = actorOf(caller)
        const { key, messages, imported = [] } = rest
        const known = key !== undefined && thread.state.keys.has(key.key)
        const said = { messages, imported, actor, ...(client && { client }) }
        const made = { creation: creation({ name, agent, governor }), rules }
        if (guard && !known)
          Object.assign(rest, await admit(thread, guard, { ...said, ...made }, newId))
        return await start(thread, { ...rest, agent, actor, whenBusy, name, governor }, newId)
      })
      if (brought && result.fresh) secrets.keep(thread, result.runId, brought.secrets)
      ringHere(thread)
      return { thread, ...result }
    },

    /** Refuses what may not be said on a thread, as `start` would, and begins nothing. */
    async admits(caller: Caller, clientId: string, request: StartRequest): Promise<void> {
      const { messages, rules: client } = request
      refuseMedia(messages, setupOf(request.agent).model)
      const thread = guard && (await find(caller, clientId))
      const said = { messages, imported: [], actor: actorOf(caller), ...(client && { client }) }
      if (thread) await admit(thread, guard, { ...said, creation: [], rules }, newId)
    },

    /** Notes that somebody asks for what runs on a thread, which a client had left. */
    async returned(caller: Caller, clientId: string): Promise<void> {
      const thread = await find(caller, clientId)
      if (thread) await noteReturn(thread, actorOf(caller))
    },

    /**
     * Creates an empty thread, unless it is there. `fresh`: this call created it. `again`: the same request with the
     * same key created it before. Throws `idempotency_mismatch` if another request on the thread used the key.
     */
    async create(caller: Caller, clientId: string, request: CreateRequest) {
      const agent = setupOf(request.agent).agent.name
      const governor = budgetOf(agent)
      const name = nameOf(caller, clientId)
      const { thread, result } = await withThread(caller, clientId, async (thread) => {
        const { title, key } = request
        const drafts: Draft[] = creation({ name, agent, governor })
        if (title !== undefined) drafts.push(draft('thread.renamed', { title }))
        if (key) drafts.push(draft('key.used', { ...key, ref: 'thread' }))
        const expect = [{ fact: 'active', is: null }, ...keyUnused(key)]
        const writing = { guard: { expect }, actor: actorOf(caller) }
        return await decide(thread, () => {
          if (usedKey(thread.state, key)) return { result: { fresh: false, again: true } }
          if (thread.state.seq > 0) return { result: { fresh: false, again: false } }
          return { drafts, writing, result: { fresh: true, again: false } }
        })
      })
      return { thread, ...result }
    },

    async cancel(caller: Caller, clientId: string, runId: string): Promise<RunStatus> {
      const thread = await upToDate(caller, clientId)
      const status = await cancel(thread, runId, newId, actorOf(caller))
      ringHere(thread)
      return status
    },

    async retry(
      caller: Caller,
      clientId: string,
      runId: string,
      { options = {}, key }: { options?: RunOptions; key?: NonNullable<Start['key']> } = {},
    ) {
      const thread = await upToDate(caller, clientId)
      await retry(thread, runId, newId, { actor: actorOf(caller), ...(key && { key }) })
      secrets.keep(thread, runId, secrets.split(options, clientId).secrets)
      ringHere(thread)
      return thread
    },
  }
}
