// Handrail as it is measured: a scripted model that does what the message says, and two tools.
import './meter.mjs'
import { z } from 'zod'
import { defineConfig, defineTool } from '../dist/index.js'
import { pause, words } from './source.mjs'

const noop = (name, access) =>
  defineTool({
    name,
    access,
    description: 'Does nothing.',
    schema: z.object({ n: z.number() }),
    run: async () => 'done',
  })

export default defineConfig({
  builtIns: false,
  tools: [noop('step', 'read'), noop('ask', 'write')],
  model: { name: 'bench', stream },
})

/** `deltas <count> <burst>`, `pause`, `steps <count>` or `hold <count>`. */
function stream({ messages }) {
  const last = messages.findLastIndex(({ role }) => role === 'user')
  const [task, count, burst] = messages[last].parts[0].text.split(' ')
  if (task === 'deltas') return words(Number(count), Number(burst))
  if (task === 'pause') return pause()
  const step = messages.slice(last + 1).filter(({ role }) => role === 'assistant').length
  if (step === Number(count)) return only({ type: 'text', text: 'Done.' })
  const name = task === 'steps' ? 'step' : 'ask'
  return only({ type: 'call', callId: `call_${last}_${step}`, name, input: `{"n":${step}}` })
}

async function* only(event) {
  yield event
}
