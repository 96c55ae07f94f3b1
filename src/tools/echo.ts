import { z } from 'zod'
import { defineTool } from '../core/tool.ts'

export function echo() {
  return defineTool({
    name: 'echo',
    description: 'Gives back the text it was given. Useful to try things out.',
    schema: z.strictObject({ text: z.string().describe('The text to give back') }),
    access: 'read',
    idempotent: true,
    describe: ({ text }) => `Echo ${text.length} characters`,
    run: async ({ text }) => text,
  })
}
