import type { Ask } from '../core/entries.ts'
import { outcomesOf, whoAsks } from './asks.ts'

/** All that a person is given to judge an ask by, on every wire of our own. */
export function cardJson(ask: Ask) {
  const { kind, title, atTimeout, effectId, callId, digest, schema, preview, evidence } = ask
  const { began, ...card } = ask.card ?? {}
  return {
    title,
    at_timeout: atTimeout,
    ...card,
    ...(began !== undefined && { began_at: new Date(began).toISOString() }),
    ...whoAsks(ask),
    ...(ask.rule !== undefined && { rule: ask.rule }),
    ...(ask.audience && { audience: ask.audience }),
    ...(kind === 'in_doubt' && { outcomes: outcomesOf(ask) }),
    ...(effectId !== undefined && { effect_id: effectId }),
    ...(callId !== undefined && { call_id: callId }),
    ...(digest !== undefined && { digest }),
    ...(ask.replaces !== undefined && { replaces: ask.replaces }),
    ...(schema !== undefined && { schema }),
    ...(ask.editable && { editable: true }),
    ...(preview !== undefined && { preview }),
    ...(evidence !== undefined && { evidence }),
  }
}
