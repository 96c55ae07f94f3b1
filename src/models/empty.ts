import { RuntimeError } from '../core/errors.ts'
import type { Model } from '../core/model.ts'

const why =
  'This server has no model of its own, only agents: set HANDRAIL_MODEL, or ask an agent that brings its own.'

/** For servers of agents that need no model. Asking it is an error that says so. */
export const emptyModel: Model = {
  name: 'empty',
  // biome-ignore lint/correctness/useYield: it has nothing to say
  async *stream() {
    throw new RuntimeError('model_missing', why)
  },
}
