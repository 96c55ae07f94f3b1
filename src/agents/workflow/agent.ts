import type { Agent } from '../../core/agent.ts'
import { saying } from '../../lib/saying.ts'
import { Course } from './course.ts'
import { allSteps, type WorkflowOptions } from './options.ts'

/**
 * The orchestrator: agents of any kind one after another, or side by side, with a state that they share
 * and people who approve. It keeps nothing but that state: a leg goes on where it says.
 */
export function workflow(options: WorkflowOptions): Agent {
  const { name, description } = options
  const steps = allSteps(options)
  const keys = steps.map(({ outputKey }) => outputKey)
  const twice = keys.find((key, i) => keys.indexOf(key) < i)
  if (twice !== undefined) throw new Error(`workflow ${name}: two steps have the output ${twice}.`)
  const deep = keys.find((key) => key.includes('/'))
  if (deep !== undefined) throw new Error(`workflow ${name}: the output ${deep} has a slash.`)
  return {
    name,
    ...(description !== undefined && { description }),
    orchestrates: true,
    parts: Object.fromEntries(steps.map(({ outputKey, agent }) => [outputKey, agent])),
    run: (ctx) => saying((say) => new Course(options, keys, ctx, say).run()),
  }
}
