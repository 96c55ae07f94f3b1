import type { Agent } from '../../core/agent.ts'
import { saying } from '../../lib/saying.ts'
import { Course } from './course.ts'
import { allSteps, type WorkflowOptions } from './options.ts'
import { isOwn } from './state.ts'

/**
 * The orchestrator: agents of any kind one after another, or side by side, with a state that they share
 * and people who approve. It keeps nothing but that state: a leg goes on where it says.
 */
export function workflow(options: WorkflowOptions): Agent {
  const { name, description, suggestions } = options
  const steps = allSteps(options)
  const keys = steps.map(({ outputKey }) => outputKey)
  const twice = keys.find((key, i) => keys.indexOf(key) < i)
  if (twice) throw new Error(`workflow ${name}: two steps have the output ${twice}.`)
  const wrong = (problem: string) => new Error(`workflow ${name}: ${problem}`)
  for (const key of keys) {
    if (!key) throw wrong('there is a step without an output. Give it an outputKey.')
    if (key.includes('/')) throw wrong(`the output ${key} has a slash.`)
    if (isOwn(key)) throw wrong(`the output ${key} is the workflow's own. Call it something else.`)
  }
  const { maxConcurrentAgents: most = 1 } = options
  if (!Number.isInteger(most) || most < 1)
    throw wrong('maxConcurrentAgents is a whole number of 1 or more.')
  return {
    name,
    ...(description !== undefined && { description }),
    ...(suggestions && { suggestions }),
    orchestrates: true,
    parts: Object.fromEntries(steps.map(({ outputKey, agent }) => [outputKey, agent])),
    run: (ctx) => saying((say) => new Course(options, keys, ctx, say).run()),
  }
}
