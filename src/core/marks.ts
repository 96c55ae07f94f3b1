import { audienceOf } from './audience.ts'
import { editOf } from './edited.ts'
import type { Draft, Envelope } from './entries.ts'
import { titleAfter } from './fold.ts'
import type { ThreadState } from './state.ts'
import type { Marks } from './store.ts'

/** Milliseconds a driver has to stop after a cancel; then anyone may write the end for it. */
export const cancelGrace = 5_000

/**
 * Returns the changes of an entry to the store's indexes. Only this file knows facts by name. `title`: the
 * thread's title before this entry, which an earlier entry of the same transition may have set.
 */
export function marksOf(
  entry: Draft & Pick<Envelope, 'at' | 'id' | 'actor'>,
  state: ThreadState,
  title = state.title,
): Marks {
  const { at, id, runId = '', legId = '' } = entry
  const thread = { updatedAt: at }
  switch (entry.kind) {
    case 'thread.created': {
      const { body } = entry
      const { threadId } = state
      const row = { threadId, ...body, title: null, createdAt: at, updatedAt: at, archived: false }
      return { thread: { ...row, status: 'idle', leg: null } }
    }
    case 'thread.head':
      return { facts: { head: entry.body.runId } }
    case 'thread.renamed':
      return { thread: { ...thread, title: entry.body.title } }
    case 'thread.archived':
      return { thread: { ...thread, archived: entry.body.archived } }
    case 'run.queued': {
      const queued = [`run:${runId}`, 'queued'] as const
      if (entry.body.behind) return { facts: dictionary(queued, ['joined', runId]), thread }
      const row = { ...thread, status: 'running', leg: legId } as const
      return { facts: dictionary(queued, ['active', runId], ['leg', legId]), thread: row }
    }
    case 'run.started':
      return { facts: dictionary([`run:${runId}`, 'running']), thread }
    case 'run.waiting': {
      const facts = dictionary<string | null>([`run:${runId}`, 'waiting'], ['leg', null])
      return { facts, thread: { ...thread, status: 'waiting', leg: null } }
    }
    case 'run.cancelling': {
      const facts = dictionary([`run:${runId}`, 'cancelling'])
      return { facts, thread, timers: dictionary([`cancel:${runId}`, at + cancelGrace]) }
    }
    case 'run.completed':
    case 'run.failed':
    case 'run.cancelled': {
      const over = [`run:${runId}`, entry.kind.slice(4)] as const
      const timers = dictionary([`cancel:${runId}`, null])
      if (state.active !== runId) return { facts: dictionary(over), thread, timers }
      const row = { ...thread, status: 'idle', leg: null } as const
      return { facts: dictionary(over, ['active', null], ['leg', null]), thread: row, timers }
    }
    case 'message.added': {
      const { message } = entry.body
      if (message.role !== 'user') return { thread }
      const named = title === null ? { title: titleAfter(title, entry) } : {}
      const facts = dictionary([`message:${message.id}`, runId || '-'])
      return { facts, thread: { ...thread, ...named } }
    }
    case 'ask.raised': {
      const { ask } = entry.body
      const { tenant, owner, threadId, clientId } = state
      const agent = state.runs.get(runId)?.agent ?? state.agent
      const open = { state: 'pending', raisedAt: at, settledAt: null, decidedBy: null } as const
      const { askId, kind, title, deadline, tool = null } = ask
      const hook = entry.body.hook && hookMarks(askId, 'raised', 0, at)
      const row = { askId, threadId, tenant, owner, clientId, runId, agent, ...open }
      return {
        facts: {
          [`ask:${askId}`]: 'pending',
          ...(kind === 'budget' && { governor: id }),
          ...hook?.facts,
        },
        ask: { ...row, kind, title, deadline, tool, audience: [...audienceOf(ask)] },
        timers: { [`ask:${askId}`]: deadline, ...hook?.timers },
      }
    }
    case 'ask.answered': {
      const { askId, state: settled, card } = entry.body
      const record = state.asks.get(askId)
      const edit = record && editOf({ ...record, answer: entry.body })
      const hook = record?.hook
      const told = hook && hookMarks(askId, hook === 'both' ? 'settled' : null, 0, at)
      const byPerson = entry.actor.type === 'user' && settled !== 'cancelled'
      const by = byPerson ? { decidedBy: entry.actor.id } : {}
      return {
        facts: { [`ask:${askId}`]: settled, ...told?.facts },
        ask: {
          ...{ askId, state: settled, settledAt: at, ...by },
          ...(card && { title: card.title }),
          ...(edit && { edited: true }),
        },
        timers: { [`ask:${askId}`]: null, ...told?.timers },
      }
    }
    case 'hook.tried': {
      const { askId, about, attempt, next } = entry.body
      return hookMarks(askId, about, attempt, next)
    }
    case 'hook.done':
      return hookMarks(entry.body.askId, null, 0, 0)
    case 'effect.intended': {
      const intended = [`effect:${entry.body.effectId}`, 'intended'] as const
      if (entry.body.effect === 'tool') return { facts: dictionary(intended) }
      return { facts: dictionary(intended, ['governor', id]) }
    }
    // Whoever reserves a call, or sets the budget, relies on what it saw of it.
    case 'governor.set':
    case 'governor.metered':
      return { facts: { governor: id } }
    case 'effect.done':
    case 'effect.failed':
    case 'effect.unknown':
      return { facts: dictionary([`effect:${entry.body.effectId}`, entry.kind.slice(7)]) }
    case 'grant.given':
      return { facts: dictionary([`grant:${entry.body.grantId}`, 'given']) }
    case 'grant.revoked':
      return { facts: dictionary([`grant:${entry.body.grantId}`, null]) }
    case 'key.used':
      return { facts: dictionary([`key:${entry.body.key}`, entry.body.ref]) }
    default:
      return {}
  }
}

/** Keys that are like no others, as those with ids: an object literal would take a shape of its own for each. */
function dictionary<V>(...pairs: readonly (readonly [string, V])[]): Record<string, V> {
  const made: Record<string, V> = Object.create(null)
  for (const [key, value] of pairs) made[key] = value
  return made
}

/** What is to be told outside, how often that was tried, and when it is next; `null`: nothing. */
function hookMarks(askId: string, about: string | null, attempt: number, at: number) {
  const name = `hook:${askId}`
  const fact = about === null ? null : hookFact(about, attempt)
  return { facts: { [name]: fact }, timers: { [name]: about === null ? null : at } }
}

export const hookFact = (about: string, attempt: number): string => `${about}.${attempt}`
