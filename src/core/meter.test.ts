import { expect, test } from 'vitest'
import { systemClock } from '../lib/clock.ts'
import { callMeter } from './meter.ts'
import { Providers } from './providers.ts'

test('the metrics name at most 500 models and count the calls of all others together', () => {
  const meter = callMeter(new Providers(systemClock))
  const call = { tenant: 't', outcome: 'ok', usage: { inputTokens: 2 } }
  meter.take({ ...call, model: 'x'.repeat(1_000) })
  for (let n = 0; n < 2_000; n++) meter.take({ ...call, model: `model-${n}` })
  meter.take({ ...call, model: 'model-0' })
  const lines = meter.text().split('\n')
  const calls = lines.filter((line) => line.startsWith('handrail_model_calls_total{'))
  expect(calls).toHaveLength(501)
  expect(calls).toContain('handrail_model_calls_total{model="model-0",tenant="t",outcome="ok"} 2')
  expect(calls).toContain('handrail_model_calls_total{model="other",tenant="t",outcome="ok"} 1501')
})
