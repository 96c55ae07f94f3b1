import { z } from 'zod'
import { defineTool } from '../../src/core/tool.ts'

/** The server-side actions of the peer in the captured exchanges. Here, for the clients bring another zod. */
export const peerTools = [
  defineTool({
    ...{ name: 'getWeather', description: 'The weather.', access: 'read' },
    schema: z.strictObject({ city: z.string() }),
    run: async ({ city }) => ({ city, tempC: 21 }),
  }),
  defineTool({
    ...{ name: 'failingAction', description: 'Fails.', access: 'read' },
    schema: z.strictObject({}),
    run: async () => {
      throw new Error('handler boom')
    },
  }),
  defineTool({
    ...{ name: 'voidAction', description: 'Gives nothing.', access: 'read' },
    schema: z.strictObject({}),
    run: async () => undefined,
  }),
  defineTool({
    ...{ name: 'lookup', description: 'Finds.', access: 'read' },
    schema: z.strictObject({ q: z.union([z.string(), z.number()]) }),
    run: async () => 'found',
  }),
]
