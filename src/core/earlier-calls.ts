import type { Bench } from './effects.ts'
import type { EffectRecord } from './state.ts'

/**
 * Calls that earlier legs of the run have made, by what was asked. Branches that run side by side add to
 * the history that their keys name, so after a leg that was parked between them the keys are others.
 */
export function earlierCalls({ leg, part }: Bench) {
  let made: Map<string, EffectRecord[]> | undefined
  const read = () => {
    const found = new Map<string, EffectRecord[]>()
    for (const effectId of leg.run.effectIds) {
      const record = leg.thread.state.effects.get(effectId)
      if (record?.state !== 'done' || record.intent.effect !== 'model') continue
      const { digest, key, path } = record.intent
      if (path !== part?.path) continue // another agent's
      if (key.startsWith(`${leg.runId}//`)) continue // its branch has a name, and finds it by that
      found.set(digest, [...(found.get(digest) ?? []), record])
    }
    return found
  }
  return (digest: string, known: EffectRecord | undefined): EffectRecord | undefined => {
    made ??= read() // at the first call: what this leg makes itself is not among them
    const left = made.get(digest) ?? []
    if (known)
      made.set(
        digest,
        left.filter((one) => one !== known),
      )
    return known ?? left.shift()
  }
}
