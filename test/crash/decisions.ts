import { type Received, receivedBy } from '../support/record.ts'
import { executions } from './outside.ts'
import type { Random } from './random.ts'

interface Approval {
  approval_id: string
  kind: string
  tool_name?: string | null
  tool_input: string | null
}

/** What the person says to an approval; without chance, whatever lets the run go on. */
export function decisionFor(
  approval: Approval,
  outside: string,
  random?: Random,
): 'cancel' | Record<string, unknown> {
  const { kind, tool_name, tool_input } = approval
  if (random?.chance(0.06)) return 'cancel'
  if (kind === 'budget') return { approved: true, newLimit: 8 }
  if (kind === 'input') return { answer: 'blue' }
  const { n } = JSON.parse(tool_input ?? '{}') as { n: number }
  if (kind === 'in_doubt') {
    if (random?.chance(0.2)) return { outcome: 'skip' }
    // The person looks: every number is counted once at most.
    const happened = tool_name
      ? executions(outside).some((execution) => execution.n === n)
      : receivedBy({ path: `${outside}.received` }).some((one) => isLegOf(approval, one))
    return happened ? { outcome: 'happened', result: 'seen outside: done' } : { outcome: 'did_not' }
  }
  if (random?.chance(0.1)) return { approved: false, reason: 'Not today' }
  if (random?.chance(0.05)) return { stop: true }
  if (random?.chance(0.1)) return { approved: true, edited_input: { n: n + 0.5 } }
  return { approved: true }
}

/** Whether it is the remote leg that the question is about: its title quotes the message, with its number. */
const isLegOf = (approval: Approval, { kind, n }: Received): boolean =>
  kind === 'remote' && n === Number(/#(\d+)/.exec(JSON.stringify(approval))?.[1])
