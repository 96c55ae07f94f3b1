// The server under test: its file tools have a short timeout, after which the next server checks what they did.
import { join } from 'node:path'
import { builtInTools, defineConfig } from '../../dist/index.js'

const root = join(process.env.HANDRAIL_DATA ?? './data', 'files')

export default defineConfig({
  tools: builtInTools({ root }).map((tool) => ({ ...tool, timeout: 500 })),
})
