import { digestOf } from '../lib/canonical.ts'
import type { RemoteCall, RemoteOutcome, RemoteUse } from './agent.ts'
import { type Bench, effectKey, recorded } from './effects.ts'
import { draft } from './entries.ts'
import { failureOf } from './errors.ts'
import { type GovernorRules, reserve } from './governor.ts'
import { mayHandOver } from './leg.ts'

/**
 * Legs of agents elsewhere: each is one effect and one call of the budget. What it reports of its own
 * model calls is counted as it comes, and stops its next leg, for this one is out of our hands.
 */
export function remoteCaller(rules: GovernorRules, bench: Bench) {
  const { leg, channel } = bench
  const ordinals = new Map<string, number>()

  return async (
    { name, input, path, idempotent = false }: RemoteCall,
    work: (use: RemoteUse) => Promise<RemoteOutcome>,
  ): Promise<RemoteOutcome> => {
    const checkpoint = path === undefined ? (bench.messages.at(-1)?.id ?? '') : ''
    const place = `${checkpoint}/${path ?? 'remote'}`
    const ordinal = ordinals.get(place) ?? 0
    ordinals.set(place, ordinal + 1)
    const { key, effectId } = effectKey(leg.runId, checkpoint, path ?? 'remote', ordinal)
    const digest = digestOf([name, input])
    const before = leg.thread.state.effects.get(effectId)
    const done = recorded(before, digest)
    if (done) return { output: done.output ?? '', ...(done.usage && { usage: done.usage }) }

    mayHandOver(leg)
    const about = { effectId, effect: 'remote' as const, name }
    const attempt = (before?.intent.attempt ?? 0) + 1
    const intent = { ...about, key, digest, attempt, input, idempotent }
    const pending = {
      agent: leg.run.agent,
      model: name,
      purpose: 'a leg of a remote agent',
      effectId,
    }
    await reserve({ intent, need: {}, pending }, rules, bench)
    await channel.away(() => leg.lease.hold())
    const metered = (calls: number) => {
      if (Number.isInteger(calls) && calls > 0)
        channel.write(draft('governor.metered', { effectId, calls }))
    }
    try {
      leg.signal.throwIfAborted()
      const again = before !== undefined && before.state !== 'failed'
      const outcome = await work({ effectId, signal: leg.signal, again, metered })
      leg.signal.throwIfAborted()
      bench.crash('effect.ran')
      await channel.commit(draft('effect.done', { ...about, ...outcome }))
      return outcome
    } catch (error) {
      if (leg.signal.aborted) {
        channel.write(draft('effect.unknown', about)) // it may still go on over there
        throw leg.signal.reason
      }
      channel.write(draft('effect.failed', { ...about, error: failureOf(error, 'agent_failed') }))
      throw error
    }
  }
}
