const query = `mutation generate($data: GenerateCopilotResponseInput!) {
  generateCopilotResponse(data: $data) {
    threadId
    status { ... on BaseResponseStatus { code } ... on FailedResponseStatus { reason details } }
    messages {
      ... on TextMessageOutput { content }
      ... on ActionExecutionMessageOutput { name arguments }
      ... on ResultMessageOutput { result }
      ... on AgentStateMessageOutput { state }
    }
    metaEvents { ... on LangGraphInterruptEvent { name value } }
  }
}`

/** One GraphQL request that says something, and its whole answer. */
export async function generate(
  url: string,
  id: string,
  content: string,
  more: object = {},
  headers = {},
) {
  const at = { id, createdAt: new Date(0).toISOString() }
  const data = {
    ...{ threadId: 'c', metadata: { requestType: 'Chat' }, frontend: { actions: [] } },
    messages: [{ ...at, textMessage: { content, role: 'user' } }],
    ...more,
  }
  const response = await fetch(`${url}/copilotkit`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json', ...headers },
    body: JSON.stringify({ query, variables: { data } }),
  })
  // biome-ignore lint/suspicious/noExplicitAny: the wire's JSON, looked into by assertions
  const { data: answer, errors } = (await response.json()) as any
  if (errors) throw new Error(JSON.stringify(errors))
  return answer.generateCopilotResponse
}
