/** One AG-UI request to the first agent, and all events of its answer. */
export async function agui(
  url: string,
  body: object,
  more: object = {},
  route: 'run' | 'connect' = 'run',
  // biome-ignore lint/suspicious/noExplicitAny: the wire's JSON, looked into by assertions
): Promise<any[]> {
  const given = { threadId: 'c', runId: 'r', messages: [], tools: [], context: [], state: {} }
  const response = await fetch(`${url}/copilotkit/agent/default/${route}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'text/event-stream', ...more },
    body: JSON.stringify({ ...given, forwardedProps: {}, ...body }),
  })
  const lines = (await response.text()).split('\n').filter((line) => line.startsWith('data:'))
  return lines.map((line) => JSON.parse(line.slice(5)))
}
