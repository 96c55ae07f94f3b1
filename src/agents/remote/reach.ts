import type { AgentContext } from '../../core/agent.ts'
import { connectionSecrets } from '../../core/connection-secrets.ts'
import { isRuntimeError, RuntimeError } from '../../core/errors.ts'
import { withoutTexts } from '../../lib/masked.ts'
import { type Egress, egress, type Patience, refusalOf } from './egress.ts'

/** How a remote is reached, whatever it speaks. */
export interface ReachOptions {
  /** Sent with every request; a function is asked for each, with what the run may know. */
  headers?:
    | Record<string, string>
    | ((about: RunAbout) => Record<string, string> | Promise<Record<string, string>>)
  /** What of the client's request is handed on, by name. Nothing is by itself. */
  forward?: { headers?: readonly string[]; properties?: readonly string[] }
  /** Milliseconds: to connect, without a byte, and for one leg in all. */
  timeouts?: Partial<Patience & { total: number }>
  /** How often a request is sent in all while the work did not start. */
  attempts?: number
  /** The address is meant to be a private one, although its name does not say so. */
  private?: boolean
}

/** What the client brought for its run, secrets among it. */
export interface RunAbout {
  headers: Record<string, string>
  properties: Record<string, unknown>
  threadId?: string
}

export const defaultTimeouts = { connect: 5_000, silence: 90_000, total: 600_000 }

export interface Reach {
  fetch: Egress
  attempts: number
  total: number
  /** Headers for a request of this run, or for none. */
  headers(ctx?: AgentContext): Promise<Record<string, string>>
  /** The client's properties that may be handed on. */
  properties(ctx: AgentContext): Record<string, unknown>
  /** The texts that errors must not repeat after a request with these headers: keys of the operator and of the client. */
  secrets(headers: Record<string, string>, ctx?: AgentContext): readonly string[]
}

export function reach(url: string, options: ReachOptions): Reach {
  const { connect, silence, total } = { ...defaultTimeouts, ...options.timeouts }
  const base = new URL(url)
  const { forward = {}, headers: own = {} } = options
  const allowed = (forward.headers ?? []).map((name) => name.toLowerCase())
  const properties = ({ options: { forwarded = {} } }: AgentContext) => {
    const names = forward.properties ?? []
    return Object.fromEntries(Object.entries(forwarded).filter(([name]) => names.includes(name)))
  }
  return {
    fetch: egress(base, { connect, silence }, options.private),
    attempts: options.attempts ?? 3,
    total,
    async headers(ctx) {
      const { headers = {}, forwarded = {} } = ctx?.options ?? {}
      const given = Object.entries(headers).filter(([name]) => allowed.includes(name.toLowerCase()))
      const about = { headers, properties: forwarded, ...(ctx && { threadId: ctx.threadId }) }
      const made = typeof own === 'function' ? await own(about) : own
      return { ...Object.fromEntries(given), ...made }
    },
    properties,
    secrets: (headers, ctx) => connectionSecrets(headers, [url, ctx && properties(ctx)]),
  }
}

/** Milliseconds before the next try of what was not begun. */
export const pause = (attempt: number): number => Math.min(500 * 2 ** (attempt - 1), 8_000)

/**
 * Whether the request may be sent again: the work did not start, or doing it twice is the same as doing it
 * once.
 */
export const mayRepeat = (error: unknown, idempotent: boolean): error is RuntimeError =>
  isRuntimeError(error, 'remote_unavailable') ||
  (idempotent && isRuntimeError(error, 'remote_outcome_unknown') && !refusalOf(error))

/** Statuses of a server that did not start the work: too early, too many requests. */
const notStarted = new Set([425, 429])

/** Whether a status leaves open what became of the work: a proxy gave up, or the server broke off. */
const isUnknownOutcome = (status: number) => status === 408 || status > 501

/** Returns a 2xx response. Throws what any other status means, with the start of the body but without the `secrets` of the request. */
export async function accepted(response: Response, secrets: readonly string[]): Promise<Response> {
  if (response.ok) return response
  const body = withoutTexts(await firstOf(response, 400), secrets)
  const said = body.replace(/\s+/g, ' ').trim()
  const told = `The remote agent answered with status ${response.status}${said && `: ${said}`}`
  const { status } = response
  if (notStarted.has(status)) throw new RuntimeError('remote_unavailable', told)
  if (isUnknownOutcome(status)) throw new RuntimeError('remote_outcome_unknown', told)
  throw new RuntimeError(status >= 500 ? 'remote_failed' : 'remote_refused', told)
}

/** The first characters of a body, however long it is. */
async function firstOf(response: Response, most: number): Promise<string> {
  const reader = response.body?.getReader()
  if (!reader) return ''
  const decoder = new TextDecoder()
  let text = ''
  try {
    while (text.length < most) {
      const { done, value } = await reader.read()
      if (done) break
      text += decoder.decode(value, { stream: true })
    }
  } catch {
    return text.slice(0, most)
  }
  await reader.cancel().catch(() => {})
  return text.slice(0, most)
}
