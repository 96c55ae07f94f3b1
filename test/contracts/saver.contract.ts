import { deltaChannelHistoryTests, validate } from '@langchain/langgraph-checkpoint-validation'
import * as vitest from 'vitest'
import { type Rec, Records } from '../../src/agents/langgraph/records.ts'
import { JournalSaver, type Shelf } from '../../src/agents/langgraph/saver.ts'
import type { Store } from '../../src/core/store.ts'
import { newId } from '../../src/lib/ids.ts'
import { journalOf } from '../support/journal.ts'
import { creation, entry } from './store.contract.ts'

/** LangGraph's own suite for checkpointers, on our saver over a real store. It wants vitest's globals. */
export function saverContract(name: string, open: () => Promise<Store>): void {
  Object.assign(globalThis, vitest)
  let store: Store
  const initializer = {
    checkpointerName: `journal saver, ${name}`,
    beforeAllTimeout: 60_000,
    async beforeAll() {
      store = await open()
    },
    createCheckpointer: () => new JournalSaver(storeShelf(store)),
  }
  validate(initializer)
  deltaChannelHistoryTests(initializer)
}

/** Every record is an entry of a thread in the store, and all is read from there again each time. */
export function storeShelf(store: Store): Shelf {
  const threads = new Map<string, string>()
  const keyOf = async (threadId: string): Promise<string> => {
    const known = threads.get(threadId)
    if (known !== undefined) return known
    const key = newId('thread')
    threads.set(threadId, key)
    await store.append(key, [creation(key)], {})
    return key
  }
  return {
    threads: () => [...threads.keys()],
    async records(threadId) {
      const records = new Records()
      for (const { kind, body } of await journalOf(store, await keyOf(threadId)))
        if (kind === 'checkpoint.kept') records.add(body.checkpointId, body.data as Rec)
      return records
    },
    async keep(threadId, checkpointId, data) {
      const key = await keyOf(threadId)
      const body = JSON.stringify({ agent: 'graph', checkpointId, data })
      await store.append(key, [entry(key, { kind: 'checkpoint.kept', body })], {})
    },
  }
}
