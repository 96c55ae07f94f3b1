import {
  type AgentSubscriber,
  type BaseEvent,
  HttpAgent,
  type RunAgentInput,
  type RunAgentParameters,
  runHttpRequest,
  transformHttpEventStream,
} from '@ag-ui/client'
import type { CopilotKitCore, CopilotKitCoreConfig, FrontendTool } from '@copilotkit/core'
import type { Observable } from 'rxjs'
import { expect } from 'vitest'
import { type Event, type Fetch, type Recorded, recorder } from './judge.ts'

/** What both real clients can do with a thread. */
export interface Client {
  /** Says something, and reads the answer to its end. */
  say(text: string, options?: RunOptions): Promise<Recorded>
  /** Sends what it has: an answer, a result, the same again. The last stream it read. */
  run(options?: RunOptions): Promise<Recorded>
  connect(options?: RunOptions): Promise<Recorded>
  /** Everything it has read, oldest first. */
  streams: Recorded[]
  /** The agent object of the client: its messages, its state, what it holds for pending. */
  agent: Pick<HttpAgent, 'messages' | 'state' | 'pendingInterrupts' | 'threadId' | 'setMessages'> &
    Pick<HttpAgent, 'addMessage' | 'setState' | 'abortRun' | 'isRunning'>
  /** What is on its screen. */
  shown(): string[]
  /** Codes of what it reported as an error. */
  errors: string[]
}

export type RunOptions = RunAgentParameters

export interface ClientOptions {
  agentId?: string
  headers?: Record<string, string>
  path?: string
}

/** `HttpAgent`, and the connect that its base class checks but leaves to others to send. */
export class ConnectingAgent extends HttpAgent {
  accept: string | undefined

  protected override connect(input: RunAgentInput): Observable<BaseEvent> {
    const url = this.url.replace(/\/run$/, '/connect')
    return transformHttpEventStream(runHttpRequest(() => this.fetch(url, this.requestInit(input))))
  }

  protected override requestInit(input: RunAgentInput): RequestInit {
    const init = super.requestInit(input)
    return this.accept ? { ...init, headers: { ...init.headers, Accept: this.accept } } : init
  }
}

/** The bare client of dialect 1.0. It throws what it does not like. */
export function httpClient(base: string, threadId: string, options: ClientOptions = {}) {
  const { agentId = 'default', headers = {}, path = '/copilotkit' } = options
  const { fetch, streams } = recorder()
  const url = `${base}${path}/agent/${agentId}/run`
  const agent = new ConnectingAgent({ url, threadId, headers, fetch })
  const errors: string[] = []
  const watch: AgentSubscriber = {
    onRunErrorEvent: ({ event }) => {
      errors.push(event.code ?? '')
    },
  }
  const last = () => streams.at(-1)!
  const client: Client & { agent: ConnectingAgent } = {
    agent,
    streams,
    errors,
    shown: () => lines(agent.messages),
    say(text, more) {
      agent.addMessage(userMessage(text))
      return client.run(more)
    },
    async run(more = {}) {
      const before = streams.length
      await agent.runAgent(more, watch)
      expect(streams.length, 'a run was sent').toBeGreaterThan(before)
      return last()
    },
    async connect(more = {}) {
      await agent.connectAgent(more, watch)
      return last()
    },
  }
  return client
}

/** The headless core of CopilotKit, dialect 0.0.59. It hides what it does not like. */
export async function coreClient(
  base: string,
  threadId: string,
  options: ClientOptions & { config?: CopilotKitCoreConfig; tools?: FrontendTool[] } = {},
) {
  const { agentId = 'default', headers = {}, path = '/copilotkit', config, tools } = options
  const made = await newCore({
    ...{ runtimeUrl: base + path, headers, ...config },
    ...(tools && { tools }),
  })
  const { core } = made
  const { fetch, streams } = recorder()
  const agent = core.getAgent(agentId) as unknown as HttpAgent
  agent.fetch = fetch as Fetch
  agent.threadId = threadId
  const errors: string[] = []
  core.subscribe({
    onError: ({ code, context }) => {
      errors.push(String(context?.runtimeErrorCode ?? code))
    },
  })
  const last = () => streams.at(-1)!
  const client: Client & { core: CopilotKitCore; agent: HttpAgent } = {
    core,
    agent,
    streams,
    errors,
    shown: () => lines(agent.messages),
    say(text, more) {
      agent.addMessage(userMessage(text))
      return client.run(more)
    },
    async run({ resume, runId, forwardedProps } = {}) {
      await core.runAgent({
        agent: agent as never,
        ...(resume && { resume: resume as never }),
        ...(runId !== undefined && { runId }),
        ...(forwardedProps && { forwardedProps }),
      })
      return last()
    },
    async connect() {
      await core.connectAgent({ agent: agent as never })
      return last()
    },
  }
  return client
}

async function newCore(config: CopilotKitCoreConfig) {
  // Without a window the core takes itself for a server's render, and asks nobody.
  const world = globalThis as { window?: unknown }
  world.window ??= {}
  const { CopilotKitCore } = await import('@copilotkit/core')
  const core = new CopilotKitCore({ ...config, deferInitialConnection: true })
  const found = new Promise<void>((resolve, reject) => {
    core.subscribe({
      onAgentsChanged: ({ agents }) => {
        if (Object.keys(agents).length > 0) resolve()
      },
      onError: ({ error, code }) => {
        if (code === 'runtime_info_fetch_failed') reject(error)
      },
    })
  })
  core.connect()
  await found
  return { core }
}

export const clients = [
  {
    name: 'HttpAgent',
    open: async (...given: Parameters<typeof httpClient>) => httpClient(...given),
  },
  { name: 'CopilotKitCore', open: coreClient },
] as const satisfies { name: string; open: (...given: never[]) => Promise<Client> }[]

export const userMessage = (content: string, id: string = crypto.randomUUID()) =>
  ({ id, role: 'user', content }) as const

export function toolMessage(toolCallId: string, content: unknown) {
  const words = typeof content === 'string' ? content : JSON.stringify(content)
  return { id: crypto.randomUUID() as string, role: 'tool', toolCallId, content: words } as const
}

/** Messages as `role: words name(arguments)`. */
export function lines(messages: readonly unknown[]): string[] {
  type Call = { function: { name: string; arguments: string } }
  type Line = { role: string; content?: unknown; toolCalls?: Call[] }
  return (messages as Line[]).map(({ role, content, toolCalls = [] }) => {
    const words = typeof content === 'object' ? JSON.stringify(content) : content
    const calls = toolCalls.map((call) => `${call.function.name}(${call.function.arguments})`)
    return `${role}: ${[...(words ? [words] : []), ...calls].join(' ')}`
  })
}

/** The body of a run as a client makes it. */
export function runBody(threadId: string, messages: readonly object[], more: object = {}) {
  const runId = crypto.randomUUID()
  return {
    threadId,
    runId,
    messages,
    state: {},
    tools: [],
    context: [],
    forwardedProps: {},
    ...more,
  }
}

/** Posts without a client, for what no client would send. Streams are judged like the others. */
export function poster(base: string) {
  const { fetch, streams } = recorder()
  return async (path: string, body: unknown, headers: Record<string, string> = {}) => {
    const mine = streams.length
    const response = await fetch(`${base}/copilotkit${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    })
    const text = await response.text()
    const stream = (response.headers.get('content-type') ?? '').startsWith('text/event-stream')
    return {
      status: response.status,
      headers: response.headers,
      events: (stream ? streams[mine]!.events : []) as Event[],
      json: stream || text === '' ? undefined : JSON.parse(text),
    }
  }
}

/** The end of a stream: what a client that swallows errors must have been told. */
export const ending = ({ events }: { events: readonly Event[] }): Event => events.at(-1)!

/** Refused inside the stream: nothing but the error, the start of the run aside. */
export function refusal({ events }: { events: readonly Event[] }): Event {
  expect(events.filter(({ type }) => type !== 'RUN_STARTED')).toHaveLength(1)
  return ending({ events })
}

/** Ended well, with nothing that waits for an interrupt. */
export function finished(stream: { events: readonly Event[] }): void {
  const { type, outcome = { type: 'success' } } = ending(stream)
  expect([type, outcome.type]).toEqual(['RUN_FINISHED', 'success'])
}

export const interruptsOf = (stream: { events: readonly Event[] }) =>
  (stream.events.at(-1)?.outcome?.interrupts ?? []) as Event[]

const cut = /terminated|aborted|ECONNRESET|other side closed|fetch failed/

// A client whose connection is cut also rejects where nobody listens; vitest would count that.
const strict = process.listeners('unhandledRejection')
process.removeAllListeners('unhandledRejection')
process.on('unhandledRejection', (error, promise) => {
  if (cut.test(String(error))) return
  for (const listener of strict) listener(error, promise)
})
