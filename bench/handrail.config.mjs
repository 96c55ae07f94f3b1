// Handrail as it is measured: a scripted model that does what the message says, an agent that writes
// many messages itself, and two tools.
import './meter.mjs'
import { z } from 'zod'
import { defineConfig, defineTool, RuntimeError, toolLoop } from '../dist/index.js'
import { compileSchema } from '../dist/lib/json-schema.js'
import { answers, pause, words } from './source.mjs'

const noop = (name, access, n = z.number()) =>
  defineTool({
    name,
    access,
    description: 'Does nothing.',
    schema: z.object({ n }),
    run: async () => 'done',
  })

/** A tool with a JSON Schema with references, as an MCP server describes it. */
const json = {
  type: 'object',
  properties: { rows: { type: 'array', items: { $ref: '#/$defs/row' } } },
  $defs: { row: { type: 'object', required: ['a', 'b', 'c', 'd', 'e'] } },
}
const issues = compileSchema(json, { unsupportedPatterns: 'refuse' })
const rows = defineTool({
  ...{ name: 'rows', access: 'write', description: 'Does nothing.' },
  schema: { json, issues: (value) => issues(value) },
  run: async () => 'done',
})

const loop = toolLoop({ name: 'assistant' })
const asked = (ctx) => ctx.messages().at(-1).parts[0].text ?? ''
const asksForMany = (ctx) => asked(ctx).startsWith('messages ')

export default defineConfig({
  builtIns: false,
  agents: [{ name: loop.name, run: (ctx) => (asksForMany(ctx) ? write(ctx) : loop.run(ctx)) }],
  tools: [noop('step', 'read'), noop('ask', 'write', z.any()), rows],
  model: { name: 'bench', provider: 'bench', accepts: ['image/*'], stream },
})

/** `deltas <count> <burst> [<wait>]`, `pause`, `steps <count>`, `hold <count>` or `rows <count>`. */
function stream({ messages }, _signal, use) {
  if (use?.apiKey === 'failing') throw new RuntimeError('network')
  const last = messages.findLastIndex(({ role }) => role === 'user')
  const [task, count, burst, wait] = messages[last].parts[0].text.split(' ')
  if (task === 'deltas') return words(Number(count), Number(burst), Number(wait ?? 0))
  if (task === 'pause') return pause()
  const step = messages.slice(last + 1).filter(({ role }) => role === 'assistant').length
  if (step === Number(count)) return only({ type: 'text', text: 'Done.' })
  const name = { steps: 'step', rows: 'rows' }[task] ?? 'ask'
  return only({ type: 'call', callId: `call_${last}_${step}`, name, input: `{"n":${step}}` })
}

/** Writes the answers itself, as an agent made elsewhere does. */
async function* write(ctx) {
  for (const answer of answers(asked(ctx))) {
    const id = ctx.newId('msg')
    let whole = ''
    for await (const { text } of answer) {
      whole += text
      yield { type: 'piece', piece: { kind: 'text', id, text } }
    }
    const message = { id, role: 'assistant', parts: [{ type: 'text', text: whole }] }
    yield { type: 'message', message }
  }
}

async function* only(event) {
  yield event
}
