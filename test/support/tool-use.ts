import type { ToolUse } from '../../src/core/tool.ts'

/** What a tool is run with, outside of any run. */
export const toolUse = (given: Partial<ToolUse> = {}): ToolUse => ({
  signal: new AbortController().signal,
  effectId: 'eff_1',
  tenant: 'default',
  user: 'local',
  write: () => {},
  recall: async () => ({ found: [] }),
  ask: async () => ({ state: 'cancelled' }),
  ...given,
})
