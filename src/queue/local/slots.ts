import type { Slots } from '../../core/store.ts'

export interface SlotLimits {
  /** Legs driven at once in all; absent: as many as there are. */
  total?: number
  /** Legs of one tenant. */
  perTenant?: number
}

/** Room for legs in one process: the slots of a single server. */
export function localSlots({ total, perTenant }: SlotLimits): Slots {
  /** The tenant of each leg that has a place. */
  const held = new Map<string, string>()
  const counts = new Map<string, number>()

  return {
    async take(tenant, legId) {
      const count = counts.get(tenant) ?? 0
      if (!held.has(legId)) {
        if (held.size >= (total ?? Number.POSITIVE_INFINITY)) return undefined
        if (count >= (perTenant ?? Number.POSITIVE_INFINITY)) return undefined
        held.set(legId, tenant)
        counts.set(tenant, count + 1)
      }
      return () => {
        if (!held.delete(legId)) return
        const left = counts.get(tenant)! - 1
        if (left > 0) counts.set(tenant, left)
        else counts.delete(tenant)
      }
    },
  }
}
