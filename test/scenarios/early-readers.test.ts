import { expect, test } from 'vitest'
import { scriptedModel, text } from '../../src/models/scripted.ts'
import { gate } from '../support/gate.ts'
import { serve } from '../support/serve.ts'

const authorization = 'Bearer ann-has-a-long-key'
const aguiInput = { threadId: 'c', tools: [], context: [], state: {}, forwardedProps: {} }
const generate = `mutation ($data: GenerateCopilotResponseInput!) {
  generateCopilotResponse(data: $data) {
    threadId
    status { ... on BaseResponseStatus { code } }
    messages { ... on TextMessageOutput { content } }
  }
}`

/** Requests that make the thread `c`, by wire. */
const starts: Record<string, [path: string, body: object]> = {
  chats: ['/chats/c/interactions', { user_message: 'Hi' }],
  agui: [
    '/copilotkit/agent/default/run',
    { ...aguiInput, runId: 'r', messages: [{ id: 'm', role: 'user', content: 'Hi' }] },
  ],
  graphql: [
    '/copilotkit',
    {
      query: generate,
      variables: {
        data: {
          ...{ threadId: 'c', frontend: { actions: [] }, metadata: { requestType: 'Chat' } },
          messages: [
            {
              ...{ id: 'm', createdAt: '2026-01-01T00:00:00Z' },
              textMessage: { role: 'user', content: 'Hi' },
            },
          ],
        },
      },
    },
  ],
  workflow: [
    '/copilotkit/chat',
    { session_id: 'c', messages: [{ role: 'user', content: 'Hi' }], agent: 'assistant' },
  ],
}

test.each(Object.keys(starts))(
  'an AG-UI stream that is opened before the POST of a new thread over %s returns ends with the run',
  async (wire) => {
    const model = scriptedModel(() => [text('Hello.')])
    const env = { HANDRAIL_API_KEYS: 'ann-has-a-long-key=ann' }
    const { server, url } = await serve({ model, builtIns: false }, { env })
    const post = async (path: string, body: object) => {
      const headers = { authorization, 'content-type': 'application/json' }
      const response = await fetch(url + path, {
        ...{ method: 'POST', headers, body: JSON.stringify(body) },
        signal: AbortSignal.timeout(15_000),
      })
      return await response.text()
    }
    const { append } = server.store
    const committed = gate()
    server.store.append = async (...all) => {
      const entries = await append(...all)
      if (all[1][0]?.kind === 'thread.created') await committed.pass()
      return entries
    }
    const posted = post(...starts[wire]!)
    await committed.reached
    const early = post('/copilotkit/agent/default/connect', {
      ...{ ...aguiInput, runId: 'x', messages: [] },
    })
    await new Promise((resolve) => setTimeout(resolve, 200))
    committed.open()
    expect(await posted).toContain('Hello.')
    const seen = await early
    expect(seen).toContain('Hello.')
    expect(seen).toContain('RUN_FINISHED')
  },
)
