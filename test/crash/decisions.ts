import { executions } from './outside.ts'
import type { Random } from './random.ts'

interface Approval {
  approval_id: string
  kind: string
  tool_input: string | null
}

/** What the person says to an approval; without chance, whatever lets the run go on. */
export function decisionFor(
  { kind, tool_input }: Approval,
  outside: string,
  random?: Random,
): 'cancel' | Record<string, unknown> {
  if (random?.chance(0.06)) return 'cancel'
  if (kind === 'budget') return { approved: true, newLimit: 8 }
  if (kind === 'input') return { answer: 'blue' }
  const { n } = JSON.parse(tool_input ?? '{}') as { n: number }
  if (kind === 'in_doubt') {
    if (random?.chance(0.2)) return { outcome: 'skip' }
    // The person looks: every number is counted once at most.
    const happened = executions(outside).some((execution) => execution.n === n)
    return happened ? { outcome: 'happened', result: 'seen outside: done' } : { outcome: 'did_not' }
  }
  if (random?.chance(0.1)) return { approved: false, reason: 'Not today' }
  if (random?.chance(0.05)) return { stop: true }
  if (random?.chance(0.1)) return { approved: true, edited_input: { n: n + 0.5 } }
  return { approved: true }
}
