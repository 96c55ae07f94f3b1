import type { Bench } from './effects.ts'
import type { Execution } from './execute.ts'
import { previewOf } from './showing.ts'

/**
 * Returns true if the state that the approver saw in the preview is not the state now, or if it cannot be
 * found out. The approval was for that state alone: the caller asks again. An approval without a precondition is
 * outdated once a preview has one: the preview for its card had failed, so the approver saw no state at all.
 */
export async function isOutdated(
  { tool, input, precondition }: Pick<Execution, 'tool' | 'input' | 'precondition'>,
  bench: Bench,
): Promise<boolean> {
  const preview = await previewOf(tool, input, bench)
  bench.leg.signal.throwIfAborted()
  return preview?.precondition !== precondition
}
