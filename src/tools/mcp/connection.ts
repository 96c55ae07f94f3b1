import type { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { OutcomeUnknown, type ToolUse } from '../../core/tool.ts'
import { withoutTexts } from '../../lib/masked.ts'
import { closed } from './early-ends.ts'
import { pageSchema } from './listed.ts'
import { type CallResult, textOfResult } from './result.ts'
import type { McpServer } from './servers.ts'
import { wayTo } from './transport.ts'

export interface Connection {
  /** As they are listed: each is still to be read. */
  list(): Promise<unknown[]>
  call(tool: string, input: unknown, use: ToolUse): Promise<CallResult>
  /** Fires when it is no more, whoever ended it. */
  readonly gone: AbortSignal
  close(): Promise<void>
}

export interface Heard {
  /** The tools are others now. */
  changed(): void
  /** A question that cannot be put to anybody. */
  unasked(why: string): void
}

/** Milliseconds for a server to start, to list its tools, and to show that it lives. */
const startLimit = 20_000
const listLimit = 20_000
const pingLimit = 3_000
/** The longest that a timer can be: how long a call may take, others decide. */
const forever = 2 ** 31 - 1

/** Pages of tools that are read. */
const mostPages = 50

/** Opens a connection of its own to a server. Rejects when there is none to be had. */
export async function connect(
  server: McpServer,
  heard: Heard,
  { tenant, signal }: { tenant?: string; signal?: AbortSignal } = {},
): Promise<Connection> {
  signal?.throwIfAborted()
  const { Client } = await import('@modelcontextprotocol/sdk/client/index.js')
  const { CallToolResultSchema, ElicitRequestSchema, ToolListChangedNotificationSchema } =
    await import('@modelcontextprotocol/sdk/types.js')
  const about = { name: 'handrail', version: '1' }
  const client: Client = new Client(about, { capabilities: { elicitation: { form: {} } } })
  const calls = new Set<ToolUse>()
  const gone = new AbortController()
  const { transport, secrets, kill } = await wayTo(server, tenant)
  let ended = false
  let closing: Promise<void> | undefined
  const close = () => {
    closing ??= client.close()
    return closing
  }
  let probing = false

  /** A server that does not answer is given up: what was asked of it would wait for ever. */
  const probe = async () => {
    if (probing || gone.signal.aborted) return
    probing = true
    const lives = await client.ping({ timeout: pingLimit }).then(
      () => true,
      () => false,
    )
    probing = false
    if (lives) return
    gone.abort()
    if (!ended) kill() // one that hangs does not listen to anything kinder
    await close().catch(() => {})
  }
  client.onclose = () => {
    ended = true
    gone.abort()
  }
  client.onerror = () => void probe() // also for noise among its messages, which harms nobody
  client.setNotificationHandler(ToolListChangedNotificationSchema, () => heard.changed())
  client.setRequestHandler(ElicitRequestSchema, async ({ params }, { signal }) => {
    const [only, ...others] = calls
    if (params.mode === 'url') return { action: 'decline' as const }
    if (!only || others.length > 0) {
      heard.unasked(only ? 'several calls run, and it is not said which asks' : 'no call runs')
      return { action: 'cancel' as const }
    }
    const { message: title, requestedSchema: schema } = params
    const timeout = server.askTimeout === undefined ? {} : { timeout: server.askTimeout }
    const { state, value } = await only.ask({ title, schema, ...timeout }, signal)
    if (state === 'rejected') return { action: 'decline' as const }
    if (state !== 'answered') return { action: 'cancel' as const }
    return { action: 'accept' as const, content: value as Record<string, string> }
  })
  const starting = new AbortController()
  const stop = () => {
    starting.abort()
    close().catch(() => {})
  }
  signal?.addEventListener('abort', stop, { once: true, signal: gone.signal })
  try {
    await client.connect(transport, { timeout: startLimit, signal: starting.signal })
  } catch (error) {
    if (!ended) kill()
    gone.abort()
    await close().catch(() => {})
    throw withoutKeys(error, secrets)
  }

  return {
    gone: gone.signal,
    async list() {
      const tools: unknown[] = []
      let cursor: string | undefined
      for (let page = 0; page < mostPages; page++) {
        const params = cursor === undefined ? {} : { cursor }
        const request = { method: 'tools/list' as const, params }
        const pending = client.request(request, pageSchema, { timeout: listLimit })
        const list = await pending.catch((error: unknown) => {
          throw withoutKeys(error, secrets)
        })
        tools.push(...list.tools)
        cursor = list.nextCursor
        if (cursor === undefined) break
      }
      return tools
    },
    async call(name, input, use) {
      const { signal, effectId } = use
      const params = {
        name,
        arguments: input as Record<string, unknown>,
        _meta: { 'handrail/effect-id': effectId },
      }
      const onprogress = ({ message, progress, total }: Progress) =>
        use.write(`${message ?? `${progress}${total === undefined ? '' : ` of ${total}`}`}\n`)
      calls.add(use)
      try {
        const request = { method: 'tools/call' as const, params }
        const options = { signal, timeout: forever, onprogress }
        const result = (await client.request(request, CallToolResultSchema, options)) as CallResult
        return result.isError ? failedResult(result, secrets) : result
      } catch (error) {
        if (signal.aborted) {
          void probe()
          throw signal.reason
        }
        const inSession = transport.sessionId !== undefined
        throw explained(withoutKeys(error, secrets), 'command' in server, inSession)
      } finally {
        calls.delete(use)
      }
    },
    close,
  }
}

/** Returns an error without the keys that the server may repeat in its message. Its name, code and cause stay. */
function withoutKeys(error: unknown, secrets: readonly string[]): unknown {
  if (!(error instanceof Error)) return error
  const message = withoutTexts(error.message, secrets)
  if (message === error.message) return error
  const { name, code, cause } = error as Error & { code?: unknown }
  return Object.assign(new Error(message, { cause }), { name, code })
}

const failedResult = (result: CallResult, secrets: readonly string[]): CallResult => ({
  content: [{ type: 'text', text: withoutTexts(textOfResult(result), secrets) }],
  isError: true,
})

interface Progress {
  message?: string
  progress: number
  total?: number
}

/** The server does not know our session any more: it has done nothing of what we asked. */
export class SessionGone extends Error {}

/** Errors of connections that were never made, so that nothing was sent. */
const unsent = new Set<unknown>([
  ...['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'UND_ERR_CONNECT_TIMEOUT'],
])

/** What became of a call that got no result: refused, never sent, or cut off in the middle. */
function explained(error: unknown, isProgram: boolean, inSession: boolean): Error {
  const { code, message, cause } = error as { code?: unknown; message: string; cause?: unknown }
  const cut = 'The connection to the MCP server was lost during the call.'
  if (error instanceof Error && error.name === 'McpError') {
    return code === closed ? new OutcomeUnknown(cut, isProgram) : new Error(message)
  }
  if (code === 404 && inSession) return new SessionGone('Session not found.')
  // A proxy also answers 408 for a request that it has passed on.
  if (typeof code === 'number' && code >= 400 && code < 500 && code !== 408)
    return new Error(message)
  const { code: why } = (cause ?? {}) as { code?: unknown }
  if (unsent.has(why)) return new Error('The MCP server cannot be reached. The call was not made.')
  return new OutcomeUnknown(cut, isProgram)
}
