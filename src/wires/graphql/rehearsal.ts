import type { Generated, RuntimeEvent } from './events.ts'
import type { Resolvers } from './executor.ts'

/**
 * Operations that the executor runs before the first request, so that no request waits until the executor's code is
 * compiled. Their resolvers return fixed values and read and write nothing.
 */
export const rehearsals: readonly { accept: string; body: object }[] = [
  { accept: 'application/json', body: { query: '{ availableAgents { agents { name id } } }' } },
  {
    accept: 'application/json',
    body: {
      query: `query ($data: LoadAgentStateInput!) {
        loadAgentState(data: $data) { threadId threadExists state messages }
      }`,
      variables: { data: { threadId: 'rehearsal', agentName: 'rehearsal' } },
    },
  },
  { accept: 'application/json', body: generate('') },
  { accept: 'multipart/mixed', body: generate('@stream') },
]

function generate(stream: string): object {
  const query = `mutation ($data: GenerateCopilotResponseInput!, $properties: JSONObject) {
    generateCopilotResponse(data: $data, properties: $properties) {
      threadId
      messages ${stream} {
        __typename
        id
        ... on TextMessageOutput { content ${stream} }
        ... on ActionExecutionMessageOutput { name arguments ${stream} }
        status { ... on SuccessMessageStatus { code } }
      }
      status { ... on BaseResponseStatus { code } }
    }
  }`
  const message = { id: 'rehearsal', createdAt: '2026-01-01T00:00:00.000Z' }
  const data = {
    metadata: { requestType: 'Chat' },
    frontend: { actions: [{ name: 'action', description: '', jsonSchema: '{}' }] },
    messages: [{ ...message, textMessage: { role: 'user', content: '' } }],
  }
  return { query, variables: { data, properties: {} } }
}

export const rehearsalResolvers: Resolvers = {
  availableAgents: async () => ({ agents: [{ id: 'a', name: 'a', description: '' }] }),
  loadAgentState: async ({ threadId }) => {
    const [state, messages] = [async () => '{}', async () => '[]']
    return { threadId, threadExists: false, state, messages }
  },
  generate: async (): Promise<Generated> => ({
    threadId: 'rehearsal',
    runId: null,
    extensions: null,
    events: async function* (): AsyncGenerator<RuntimeEvent[], void, undefined> {
      yield [
        { type: 'TextMessageStart', messageId: 'text', at: 0 },
        { type: 'TextMessageContent', messageId: 'text', content: 'text' },
        { type: 'TextMessageEnd', messageId: 'text' },
      ]
      yield [
        { type: 'ActionExecutionStart', actionExecutionId: 'call', actionName: 'action', at: 0 },
        { type: 'ActionExecutionArgs', actionExecutionId: 'call', args: '{}' },
        { type: 'ActionExecutionEnd', actionExecutionId: 'call' },
      ]
      yield [{ type: 'ResponseEnd', status: { code: 'Success' } }]
    },
  }),
}
