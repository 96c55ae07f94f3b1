import { auditContract } from '../../../test/contracts/audit.contract.ts'
import type { Kept } from '../../core/store.ts'
import { systemClock } from '../../lib/clock.ts'
import { memoryStore } from './store.ts'

const open = async () => {
  const store = memoryStore({ clock: systemClock })
  const changed = new Map<string, readonly Kept[]>()
  return {
    store,
    reader: async () => ({
      async *threadIds() {},
      async *entries(threadId: string) {
        yield* changed.get(threadId) ?? (await store.kept(threadId, { limit: 1e6 }))
      },
      residues: () => store.residues(),
      async close() {},
    }),
    async put(threadId: string, kept: readonly Kept[]) {
      changed.set(threadId, kept)
    },
    dispose: () => store.close(),
  }
}

auditContract('memory', open, 1_000)
