import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type ChatsClient, chatsClient } from '../support/chats.ts'
import { type ServerProcess, startServer, temporaryDirectory } from '../support/server.ts'

const settings = `
import { AgentError, defineConfig, defineTool, EffectDidNotHappen, OutcomeUnknown, toolLoop, workflow } from 'handrail'
import { z } from 'zod'

const clerk = {
  name: 'clerk',
  async *run() {
    throw new AgentError('Name an account, like ACC-001.')
  },
}
const schema = z.strictObject({ to: z.string() })
const tools = [
  defineTool({ name: 'send', description: '', schema, access: 'write', run: async ({ to }) => \`sent to \${to}\` }),
  defineTool({
    ...{ name: 'cut', description: '', schema, access: 'write' },
    run: async () => {
      throw new OutcomeUnknown('The line went dead.', true)
    },
  }),
  defineTool({
    ...{ name: 'late', description: '', schema, access: 'write', timeout: 50 },
    run: async (_, { signal }) => {
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
      throw new EffectDidNotHappen('Nothing was sent.')
    },
  }),
]
const model = {
  name: 'script',
  async *stream({ messages }) {
    const text = messages.findLast(({ role }) => role === 'user').parts[0].text
    const name = ['cut', 'late'].find((word) => text.includes(word)) ?? 'send'
    if (messages.at(-1).role === 'tool') yield { type: 'text', text: 'Done.' }
    else yield { type: 'call', callId: 'call', name, input: '{"to":"ann"}' }
  },
}
const flow = workflow({ name: 'flow', steps: [{ agent: toolLoop({ name: 'writer' }), outputKey: 'draft' }] })
export default defineConfig({ model, tools, agents: [toolLoop({ name: 'assistant' }), clerk, flow] })
`

let server: ServerProcess
let client: ChatsClient
const clean: (() => Promise<void>)[] = []

beforeAll(async () => {
  const place = await temporaryDirectory()
  const folder = fileURLToPath(new URL('../../.handrail', import.meta.url))
  const file = join(folder, `typescript-${process.pid}.config.ts`)
  await mkdir(folder, { recursive: true })
  await writeFile(file, settings)
  clean.push(() => rm(file), place.remove)
  server = await startServer({ HANDRAIL_DATA: place.path, HANDRAIL_CONFIG: file })
  client = chatsClient(server.url)
})
afterAll(async () => {
  await server?.stop()
  for (const remove of clean) await remove()
})

/** Starts a run with an agent of the file, and approves the call that it asks about. */
async function approved(agent: string, message: string) {
  const id = `${agent}-${message}`
  const body = { user_message: message, agent }
  const stream = await client.open('POST', `/chats/${id}/interactions`, body)
  const [ask] = (await stream.until('approval_required')).slice(-1)
  await client.request('POST', `/approvals/${ask!.data.approval_id}`, { decision: 'approve' })
  return stream
}

test('an AgentError of a handrail.config.ts is shown with its own message', async () => {
  const body = { user_message: 'hi', agent: 'clerk' }
  const frames = await (await client.open('POST', '/chats/c/interactions', body)).rest()
  expect(JSON.stringify(frames)).toContain('Name an account, like ACC-001.')
})

test('an OutcomeUnknown of a handrail.config.ts raises an in-doubt question', async () => {
  const stream = await approved('assistant', 'cut')
  const [question] = (await stream.until('approval_required')).slice(-1)
  expect(question?.data).toMatchObject({ kind: 'in_doubt' })
  stream.leave()
})

test('an EffectDidNotHappen of a handrail.config.ts after a timeout raises no question', async () => {
  const frames = await (await approved('assistant', 'late')).rest()
  expect(frames.map(({ event }) => event)).not.toContain('approval_required')
})

test('a workflow of a handrail.config.ts continues after the approval of a tool call', async () => {
  const frames = await (await approved('flow', 'send')).rest()
  expect(frames.at(-1)?.data).toMatchObject({ status: 'COMPLETED' })
})
