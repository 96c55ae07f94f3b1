import { call, scriptedModel, text } from '../../dist/models/scripted.js'

/** Each message is the name of a tool, which is called once. */
export default {
  builtIns: false,
  policy: [{ decision: 'allow' }],
  mcp: { till: { url: process.env.TEST_MCP_URL, timeout: 3_000, askTimeout: 60_000 } },
  model: scriptedModel((request) => {
    const last = request.messages.at(-1)
    if (last.role !== 'user') return [text('Done.')]
    const name = last.parts[0].text
    const input = name === 'slow' ? { ms: 2_000 } : { question: 'Which colour?' }
    return [call(`call_${last.id}`, `till__${name}`, input)]
  }),
}
