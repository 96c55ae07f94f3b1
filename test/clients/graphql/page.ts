import { expect } from 'vitest'
import {
  type ActionExecutionMessage,
  CopilotRuntimeClient,
  convertGqlOutputToMessages,
  convertMessagesToGqlInput,
  filterAdjacentAgentStateMessages,
  filterAgentStateMessages,
  loadMessagesFromJsonRepresentation,
  type Message,
  ResultMessage,
  Role,
  TextMessage,
} from './client.ts'
import { type Answer, listen } from './judge.ts'

type Client = InstanceType<typeof CopilotRuntimeClient>
type Source = ReturnType<Client['generateCopilotResponse']>
/** `generateCopilotResponse` as the client has it after each part. */
// biome-ignore lint/suspicious/noExplicitAny: the client's own data, looked into by assertions
export type Seen = Record<string, any>
type Data = Parameters<Client['generateCopilotResponse']>[0]['data']

export interface Action {
  name: string
  description?: string
  parameters?: object
  available?: 'disabled' | 'enabled' | 'remote'
  /** What the page does when it is called. Without it the call stays open. */
  handler?: (args: Record<string, unknown>) => unknown
}

export interface PageOptions {
  threadId?: string | null
  agent?: string
  actions?: Action[]
  headers?: Record<string, string>
  path?: string
  publicApiKey?: string
  properties?: Record<string, unknown>
  /** The words of its system message; React sends one in front of everything. */
  system?: string | null
  /** More of the request's data. */
  data?: Partial<Data>
}

/** What the client was told by one response. */
export interface Heard {
  /** Each time something was new, the whole of it. */
  seen: Seen[]
  last: Seen
  status: Seen
  /** The messages of the response, as the client reads them. */
  messages: Message[]
  error: Error | undefined
  answer: Answer
}

export interface Watching {
  done: Promise<Heard>
  seen: Seen[]
  /** Once the client has these words in a message. */
  sees(words: string): Promise<void>
  /** As React's stop button does. */
  stop(): void
}

export interface Page {
  client: Client
  /** The answers it got, oldest first. */
  answers: Answer[]
  /** What the client called its error and warning handlers with. */
  errors: Error[]
  warnings: string[]
  /** Everything on the page, state messages included. */
  messages: Message[]
  session: { agentName: string; [more: string]: unknown } | null
  states: Record<string, unknown>
  runId: string | null
  extensions: object
  /** The open interrupt: React keeps the last. */
  interrupt: { value: Seen; text: string } | undefined
  add(message: Message): void
  /** Says something, and reads all that comes of it, follow-ups too. */
  say(text: string, id?: string, more?: Partial<Data>): Promise<Heard>
  /** Sends what it has, runs what it is asked to run, and so on to the end. */
  complete(more?: Partial<Data>): Promise<Heard>
  /** One request with what it has, and what the client sees of the answer as it comes. */
  begin(more?: Partial<Data>): Watching
  /** Resolves the interrupt, as `resolve(response)` of React's hook. */
  resolve(response: unknown, more?: Partial<Data>): Promise<Heard>
  /** What React does at mount when it has an agent: the stored messages replace the chat. */
  load(agent?: string): Promise<{ error: Error | undefined; exists: boolean; state: unknown }>
  agents(): Promise<Seen>
  shown(): string[]
}

/**
 * A page on the real client: what React's `useChat` of 1.10.6 does around it, without React. It
 * sends its whole list, a system message of a new id in front, runs the handlers of the actions at
 * the end of a response, and follows up with their results.
 */
export function openPage(base: string, options: PageOptions = {}): Page {
  const {
    path = '/copilotkit',
    headers = {},
    publicApiKey,
    system = 'You are a copilot.',
  } = options
  const { threadId = 't', actions = [], properties = {} } = options
  const errors: Error[] = []
  const warnings: string[] = []
  const answers: Answer[] = []
  const client = new CopilotRuntimeClient({
    url: base + path,
    headers,
    ...(publicApiKey && { publicApiKey }),
    handleGQLErrors: (error) => errors.push(error),
    handleGQLWarning: (warning) => warnings.push(warning),
  })
  const session = (agent: string | undefined) => (agent === undefined ? null : { agentName: agent })
  const page: Page = {
    client,
    answers,
    errors,
    warnings,
    messages: [],
    session: session(options.agent),
    states: {},
    runId: null,
    extensions: {},
    interrupt: undefined,

    add(message) {
      page.messages = [...page.messages, message]
    },

    async say(text, id, more) {
      page.add(userMessage(text, id))
      return page.complete({ ...more, metaEvents: [] }) // an answer is sent once
    },

    async complete(more = {}) {
      const heard = await page.begin(more).done
      // A failed response makes React throw; one that was interrupted does not.
      const over = heard.error || heard.status?.reason === 'UNKNOWN_ERROR'
      const ran = over ? undefined : await handle(page.messages, actions)
      if (!ran) return heard
      page.messages = ran
      return page.complete(more)
    },

    begin(more = {}) {
      const mine: Answer[] = []
      const abort = new AbortController()
      const list = filterAgentStateMessages(page.messages)
      const sent = system === null ? list : [systemMessage(system), ...list]
      const data = {
        frontend: { actions: actions.map(actionInput), url: 'http://localhost:3000/' },
        ...(threadId !== null && { threadId }),
        ...{ runId: page.runId, extensions: page.extensions, metaEvents: [] },
        messages: convertMessagesToGqlInput(sent),
        metadata: { requestType: 'Chat' },
        ...(page.session && { agentSession: page.session }),
        agentStates: Object.entries(page.states).map(([agentName, state]) => ({
          ...{ agentName, state: JSON.stringify(state) },
        })),
        ...{ forwardedParameters: {}, context: [] },
        ...options.data,
        ...more,
      } as unknown as Data
      const previous = page.messages
      const seen: Seen[] = []
      const source = () =>
        client.generateCopilotResponse({ data, properties, signal: abort.signal })
      const reading = listen(mine, () => read(client, source(), seen, abort.signal))
      const done = reading.then((error): Heard => {
        const [answer] = mine
        if (answer) answers.push(answer)
        const last = seen.at(-1) ?? {}
        const messages = shownOf(last.messages ?? [])
        adopt(last, previous, messages)
        return { seen, last, status: last.status, messages, error, answer: answer! }
      })
      return {
        done,
        seen,
        async sees(words) {
          let over = false
          void done.finally(() => {
            over = true
          })
          while (
            !seen.some(({ messages }) => lines(shownOf(messages)).join('\n').includes(words))
          ) {
            expect(over, `the response ended before ${words}: ${JSON.stringify(seen.at(-1))}`).toBe(
              false,
            )
            await new Promise((resolve) => setImmediate(resolve))
          }
        },
        stop: () => abort.abort('Stop was called'),
      }
    },

    resolve(response, more = {}) {
      const { text } = page.interrupt!
      page.interrupt = undefined
      return page.complete({ metaEvents: [metaEvent(text, response)], ...more })
    },

    async load(agent = page.session?.agentName ?? 'default') {
      // A client of its own, as React makes them: this one keeps answers to queries.
      const { client: fresh } = openClient(base + path, headers)
      const asking = () =>
        fresh.loadAgentState({ threadId: threadId ?? 't', agentName: agent }).toPromise()
      const { data, error } = await listen(answers, asking)
      const loaded = data?.loadAgentState
      if (error || !loaded) return { error: error as Error, exists: false, state: undefined }
      page.messages = loadMessagesFromJsonRepresentation(JSON.parse(loaded.messages))
      const state: unknown = JSON.parse(loaded.state)
      if (loaded.threadExists && loaded.state !== '{}') page.states[agent] = state
      return { error: undefined, exists: loaded.threadExists, state }
    },

    async agents() {
      const { client: fresh } = openClient(base + path, headers)
      return await listen(answers, () => fresh.availableAgents().toPromise())
    },

    shown: () => lines(page.messages),
  }

  /** What React takes from a response besides what it shows. */
  function adopt(last: Seen, previous: Message[], messages: Message[]): void {
    page.runId = last.runId ?? null
    page.extensions = CopilotRuntimeClient.removeGraphQLTypename(
      structuredClone(last.extensions ?? {}),
    )
    page.messages = [...previous, ...messages]
    for (const event of last.metaEvents ?? [])
      if (event.name === 'LangGraphInterruptEvent')
        page.interrupt = { value: parsed(event.value), text: event.value }
    const state = messages.findLast((one) => one.isAgentStateMessage())
    if (!state?.isAgentStateMessage()) return
    page.states[state.agentName] = state.state
    if (state.state.messages?.length > 0)
      page.messages = loadMessagesFromJsonRepresentation(state.state.messages)
    const { threadId, agentName, nodeName } = state
    page.session = state.running ? { threadId, agentName, nodeName } : session(options.agent)
  }

  return page
}

function openClient(url: string, headers: Record<string, string>) {
  return { client: new CopilotRuntimeClient({ url, headers, handleGQLErrors: () => {} }) }
}

/** Reads to the end; the error it ended with, if any. */
async function read(
  client: Client,
  source: Source,
  seen: Seen[],
  signal: AbortSignal,
): Promise<Error | undefined> {
  const reader = client.asStream(source as never).getReader()
  try {
    for (;;) {
      const { done, value } = (await reader.read()) as { done: boolean; value?: Seen }
      if (done) return undefined
      if (value?.generateCopilotResponse) seen.push(structuredClone(value.generateCopilotResponse))
    }
  } catch (error) {
    if (signal.aborted) return undefined
    return error as Error
  }
}

/** React falls back to the text. */
function parsed(value: string): Seen {
  try {
    return JSON.parse(value)
  } catch {
    return value as unknown as Seen
  }
}

/** Runs the actions at the end of the list; the list with their results, if any was run. */
async function handle(messages: Message[], actions: readonly Action[]) {
  const list = [...messages]
  const open: ActionExecutionMessage[] = []
  for (const message of list.toReversed()) {
    if (message.isAgentStateMessage()) continue
    const trails = message.isActionExecutionMessage() || message.isResultMessage()
    if (!trails || message.status.code === 'Pending') break
    if (message.isActionExecutionMessage()) open.unshift(message)
  }
  let ran = false
  for (const call of open) {
    const { handler } = actions.find(({ name }) => name === call.name) ?? {}
    if (!handler) continue
    ran = true
    const result = resultMessage(call.id, call.name, await handler(call.arguments))
    list.splice(list.indexOf(call) + 1, 0, result)
  }
  return ran ? list : undefined
}

const shownOf = (output: unknown) =>
  convertGqlOutputToMessages(filterAdjacentAgentStateMessages(output as never))

export const userMessage = (content: string, id: string = crypto.randomUUID()): Message =>
  new TextMessage({ id, role: Role.User, content })

const systemMessage = (content: string): Message =>
  new TextMessage({ id: `ck-${crypto.randomUUID()}`, role: Role.System, content })

/** As React makes it. */
export const resultMessage = (callId: string, actionName: string, result: unknown): Message =>
  new ResultMessage({
    id: `result-${callId}`,
    actionExecutionId: callId,
    actionName,
    result: ResultMessage.encodeResult(result),
  })

export const metaEvent = (value: string, response: unknown) => ({
  name: 'LangGraphInterruptEvent' as never,
  value,
  response: typeof response === 'string' ? response : JSON.stringify(response),
})

export const actionInput = ({ name, description = '', parameters, available }: Action) => ({
  ...{ name, description, jsonSchema: JSON.stringify(parameters ?? { type: 'object' }) },
  available: (available ?? 'enabled') as never,
})

/** Messages as `role: words`, `call name(arguments)`, `result words`; states and empty texts are not shown. */
export function lines(messages: readonly Message[]): string[] {
  return messages.flatMap((message) => {
    if (message.isTextMessage())
      return message.content === '' ? [] : [`${message.role}: ${message.content}`]
    if (message.isActionExecutionMessage())
      return [`call ${message.name}(${JSON.stringify(message.arguments)})`]
    if (message.isResultMessage()) return [`result ${message.result}`]
    if (message.isImageMessage()) return [`${message.role}: [${message.format}]`]
    return []
  })
}
