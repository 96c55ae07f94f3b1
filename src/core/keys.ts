import { RuntimeError } from './errors.ts'
import type { ThreadState } from './state.ts'
import type { Expectation } from './store.ts'

/** An idempotency key, with the digest of the request that it stands for. */
export interface RequestKey {
  key: string
  digest: string
}

/** The earlier use of the key. Throws `idempotency_mismatch` if that was another request. */
export function usedKey({ keys }: ThreadState, key: RequestKey | undefined) {
  const used = key && keys.get(key.key)
  if (used && used.digest !== key.digest) throw new RuntimeError('idempotency_mismatch')
  return used
}

/** Guards a transition that uses the key: of two requests with one key, the second is refused and looks again. */
export const keyUnused = (key: RequestKey | undefined): Expectation[] =>
  key ? [{ fact: `key:${key.key}`, is: null }] : []
