import { ConfigError } from '../config.ts'
import { exportDecisions } from './audit-export.ts'
import { exportHeads } from './audit-head.ts'
import { verify } from './audit-verify.ts'
import type { Command } from './command.ts'

const actions: Record<string, (command: Command) => Promise<number>> = {
  verify,
  head: exportHeads,
  export: exportDecisions,
}

/** `handrail audit verify|head|export`: looks at the store and changes nothing, beside its servers. */
export async function audit(command: Command): Promise<number> {
  const [action = '', ...args] = command.args
  if (!Object.hasOwn(actions, action)) throw new ConfigError('Say what: verify, head or export.')
  return await actions[action]!({ ...command, args })
}
