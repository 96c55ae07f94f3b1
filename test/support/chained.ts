import { localBus } from '../../src/bus/local/bus.ts'
import { type AuditKeys, auditKeys } from '../../src/core/audit.ts'
import { type Draft, draft } from '../../src/core/entries.ts'
import { userText } from '../../src/core/messages.ts'
import type { Store } from '../../src/core/store.ts'
import { Thread } from '../../src/core/thread.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { newId } from '../../src/lib/ids.ts'

export const keys = auditKeys(['a-secret-of-thirty-two-characters'])!

/** A thread as one server has it; each has a bus of its own, so that none hears of the others. */
export function seat(store: Store, threadId: string, audit?: AuditKeys): Thread {
  const around = { store, bus: localBus(), clock: systemClock, newId, crash: () => {} }
  return new Thread(threadId, { ...around, ...(audit && { audit }) })
}

export const person = { type: 'user', id: 'ann', wire: 'chats' } as const
export const command = { guard: {}, actor: person }

export async function create(thread: Thread): Promise<void> {
  const name = { tenant: 't', owner: 'ann', clientId: thread.threadId }
  const first = draft('thread.created', { ...name, agent: 'assistant' })
  await thread.commit([first, draft('governor.set', { actionLimit: 3 })], command)
}

/** A question, its answer and what came of it: two or three entries at a time. */
export function transitions(n: number): Draft[][] {
  const [askId, effectId, runId] = [`ask${n}`, `effect${n}`, `run${n}`]
  const about = { effectId, effect: 'tool', name: 'mail' } as const
  const ask = { askId, kind: 'approval', title: `Send ${n}?`, step: 's', key: 'k' } as const
  const due = { deadline: 9e12, atTimeout: 'reject' } as const
  const intent = { ...about, key: `k${n}`, digest: 'd', attempt: 1, askId }
  return [
    [
      draft('message.added', { message: userText(`m${n}`, `Hello ${n}`), for: 'both' }, { runId }),
      draft('ask.raised', { ask: { ...ask, ...due } }, { runId }),
    ],
    [draft('ask.answered', { askId, state: 'approved', reason: 'für Ärger\n"quoted"' }, { runId })],
    [
      draft('effect.intended', intent, { runId }),
      draft('effect.done', { ...about, output: 'sent' }, { runId }),
      draft('event', { name: 'custom', value: { n } }, { runId }),
    ],
  ]
}

/** A thread with some rounds of it, by one server. */
export async function story(store: Store, threadId: string, rounds: number, audit = keys) {
  const thread = seat(store, threadId, audit)
  await create(thread)
  for (let n = 0; n < rounds; n++)
    for (const drafts of transitions(n)) await thread.commit(drafts, command)
  return thread
}
