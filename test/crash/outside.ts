import { readFileSync } from 'node:fs'

/** The outside world's own record: every execution of a tool, as it happened. */
export interface Execution {
  effectId: string
  /** The tool's input. */
  n: number
  /** Which process, and when by its clock. */
  by: string
  at: number
}

export function executions(path: string): Execution[] {
  let text = ''
  try {
    text = readFileSync(path, 'utf8')
  } catch {} // nothing has happened yet
  return text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Execution)
}
