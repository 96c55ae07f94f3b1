import { expect, test } from 'vitest'
import { z } from 'zod'
import { entry } from '../../test/contracts/store.contract.ts'
import { type Body, draft, type Kind } from '../core/entries.ts'
import type { PolicyRule } from '../core/policy.ts'
import type { Kept } from '../core/store.ts'
import { defineTool } from '../core/tool.ts'
import { sha256 } from '../lib/canonical.ts'
import { nothing, replay } from './replay.ts'

function kept<K extends Kind>(kind: K, body: Body<K>): Kept {
  const json = JSON.stringify(draft(kind, body).body)
  return {
    entry: { ...entry('t', { at: 1, runId: 'r' }), kind, body: json, digest: sha256(json) },
  } as unknown as Kept
}

test('conditions of the policy judge a stored raw input as the schema returns it', async () => {
  const pay = defineTool({
    name: 'pay',
    description: '',
    schema: z.object({ amount: z.number().transform((amount) => amount * 100) }),
    run: async () => '',
  })
  const ask = {
    ...{ askId: 'ask_1', kind: 'approval' as const, title: 'Pay', step: 's', key: 'k' },
    ...{ tool: 'pay', callId: '1', input: { amount: 5 }, raw: true },
    ...{ deadline: 1, atTimeout: 'reject' as const },
  }
  const intent = {
    ...{ effectId: 'e', effect: 'tool' as const, name: 'pay', key: 'k', digest: 'd', attempt: 1 },
    ...{ input: { amount: 5 }, raw: true },
  }
  const thread = async function* () {
    yield kept('run.queued', { agent: 'assistant', why: 'start' })
    yield kept('ask.raised', { ask })
    yield kept('effect.intended', intent)
  }
  const policy: PolicyRule[] = [
    { tool: 'pay', arguments: { amount: { under: 100 } }, decision: 'allow' },
    { tool: 'pay', arguments: { amount: { equals: 500 } }, decision: 'deny' },
  ]
  const found = nothing()
  const tools = new Map([['pay', pay]])
  await replay(thread(), { policy, tools, servers: [], since: 0 }, found)
  expect(found.asks.deny.total).toBe(1)
  expect(found.calls).toEqual({ allow: 0, ask: 0, deny: 1 })
})
