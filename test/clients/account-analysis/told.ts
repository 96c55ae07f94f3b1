import type { Frame } from '../../support/chats.ts'
import { fromOutput, type Json, type Seen } from './seen.ts'

/** What frames tell, where each move of an agent is one: of the workflow API, and of the chats API. */
export class Told {
  readonly #seen: Omit<Seen, 'end'> = {
    ...{ agents: {}, completed: [], errors: [], lines: [] },
    ...{ account: undefined, recommendation: undefined, approval: undefined, failure: undefined },
  }

  take(event: string, data: Json): void {
    const seen = this.#seen
    if (event === 'agent_started') seen.agents[data.agent] = 'running'
    if (event === 'agent_completed') {
      seen.agents[data.agent] = 'completed'
      seen.completed.push(data.agent)
      if (data.agent === 'zoho_scout') seen.account = data.output.name
    }
    if (event === 'agent_error' && data.agent !== 'orchestrator') {
      const { agent, error_message: error, code, critical } = data
      seen.agents[agent] = 'failed'
      seen.errors.push({ agent, error, code, critical })
    }
    if (event === 'workflow_completed') Object.assign(seen, fromOutput(data.final_output))
  }

  set(more: Partial<Seen>): void {
    Object.assign(this.#seen, more)
  }

  say(line: string): void {
    this.#seen.lines.push(line)
  }

  now(end: Seen['end']): Seen {
    return structuredClone({ ...this.#seen, end })
  }
}

/** Reads frames until one of these, and gives that one; nothing when the stream ends first. */
export async function until(
  frames: AsyncIterator<Frame>,
  take: (frame: Frame) => void,
  ends: readonly string[],
): Promise<Frame | undefined> {
  for (;;) {
    const { done, value } = await frames.next()
    if (done) return undefined
    take(value)
    if (ends.includes(value.event)) return value
  }
}
