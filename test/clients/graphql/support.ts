import { type ASTNode, Kind, print, type SelectionSetNode, visit } from 'graphql'
import { expect } from 'vitest'
import { GenerateCopilotResponseDocument, loadMessagesFromJsonRepresentation } from './client.ts'
import { type Answer, listen } from './judge.ts'
import type { Heard, Seen } from './page.ts'

export * from './page.ts'

export const loadMessages = (json: string) => loadMessagesFromJsonRepresentation(JSON.parse(json))

/** The document that the client sends for a response, before it adds `__typename`. */
export const document = print(GenerateCopilotResponseDocument as never)

/** The one that it sends: it asks for the type of everything it can. */
export const typedDocument = print(
  visit(
    GenerateCopilotResponseDocument as never,
    {
      SelectionSet: { leave: withTypename },
    } as never,
  ),
)

function withTypename(node: SelectionSetNode, _key: unknown, parent: ASTNode): SelectionSetNode {
  const asked = node.selections.some(
    (one) => one.kind === Kind.FIELD && one.name.value === '__typename',
  )
  if (asked || parent.kind === Kind.OPERATION_DEFINITION) return node
  const typename = { kind: Kind.FIELD, name: { kind: Kind.NAME, value: '__typename' } } as const
  return { ...node, selections: [...node.selections, typename] }
}

/** A message as it stands in a request. */
export const textInput = (content: string, id: string, role = 'user') => ({
  ...{ id, createdAt: '2025-01-01T00:00:00.000Z' },
  textMessage: { content, role },
})

/** The data of a request as React makes it. */
export const dataOf = (messages: readonly object[], more: object = {}) => ({
  ...{ agentStates: [], context: [], extensions: {}, forwardedParameters: {}, metaEvents: [] },
  frontend: { actions: [], url: 'http://localhost:3000/' },
  ...{ messages, metadata: { requestType: 'Chat' }, runId: null, threadId: 't' },
  ...more,
})

/** The list of what the client accepts, in its order. */
export const accept =
  'application/graphql-response+json, application/graphql+json, application/json, text/event-stream, multipart/mixed'

export interface PostOptions {
  headers?: Record<string, string | undefined>
  path?: string
  query?: string
  signal?: AbortSignal
  /** Closes the connection when this was said. */
  leaves?: string | undefined
  /** Has the answer in it while it is read. */
  answers?: Answer[]
}

/** Asks without a client, for what no client would send; the answer is read to its end. */
export async function post(base: string, body: unknown, options: PostOptions = {}) {
  const { path = '/copilotkit', headers, signal, answers = [] } = options
  const all = { accept, 'content-type': 'application/json', ...headers }
  const given = Object.entries(all).filter((one): one is [string, string] => one[1] !== undefined)
  const response = await listen(answers, () =>
    fetch(base + path, {
      method: 'POST',
      headers: Object.fromEntries(given),
      body: typeof body === 'string' ? body : JSON.stringify(body),
      ...(signal && { signal }),
    }),
  )
  const text =
    options.leaves === undefined
      ? await response.text()
      : await leave(response, options.leaves, answers[0]!)
  const isJson = /json/.test(response.headers.get('content-type') ?? '')
  return {
    ...{ status: response.status, headers: response.headers, text },
    json: isJson && text !== '' ? JSON.parse(text) : undefined,
    answer: answers[0]!,
    payloads: answers[0]?.stream?.payloads ?? [],
    /** The whole response, put together. */
    response: answers[0]?.told().response as Seen,
  }
}

/** Reads until something was said, and closes the connection. */
async function leave(response: Response, words: string, answer: Answer): Promise<string> {
  let text = ''
  for await (const chunk of response.body!) {
    text += Buffer.from(chunk).toString('utf8')
    if (text.includes(words) && answer.stream!.payloads.length > 0) break
  }
  return text
}

/** Asks for a response, without a client. */
export const generate = (base: string, data: object, options: PostOptions = {}) =>
  post(
    base,
    {
      operationName: 'generateCopilotResponse',
      query: options.query ?? document,
      variables: { data },
    },
    options,
  )

/** Ended well. */
export function succeeded({ error, status, last }: Heard): void {
  expect(error).toBeUndefined()
  expect(status, JSON.stringify(last)).toMatchObject({ code: 'Success' })
}

/** Waits for something that the test cannot be told of. */
export async function until(what: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await what())) await new Promise((resolve) => setImmediate(resolve))
}

const cut = /terminated|aborted|ECONNRESET|other side closed|fetch failed|Stop was called/

// A client whose connection is cut also rejects where nobody listens; vitest would count that.
const strict = process.listeners('unhandledRejection')
process.removeAllListeners('unhandledRejection')
process.on('unhandledRejection', (error, promise) => {
  if (cut.test(String(error))) return
  for (const listener of strict) listener(error, promise)
})
