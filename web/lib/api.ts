import { keyHeaders } from './key.ts'
import type { AgentInfo, Outline, ThreadRow } from './shapes.ts'

/** The page's own address of the runtime. */
export const base = '/api/copilotkit'

/** The runtime said no, or did not answer. */
export class ApiError extends Error {
  readonly status: number
  readonly code: string

  constructor(status: number, code: string, message: string) {
    super(message)
    this.status = status
    this.code = code
  }
}

/** One request. Rejects with an `ApiError`, or with an abort. */
export async function request(path: string, init: RequestInit = {}): Promise<Response> {
  const headers = { ...keyHeaders(), ...(init.headers as Record<string, string> | undefined) }
  let response: Response
  try {
    response = await fetch(base + path, { ...init, headers })
  } catch (problem) {
    if (init.signal?.aborted) throw problem
    throw new ApiError(0, 'page_unreachable', 'This page has lost its server.')
  }
  if (response.ok) return response
  throw toApiError(response.status, await response.json().catch(() => ({})))
}

interface ErrorBody {
  code?: string
  error?: string
  message?: string
  reason?: string
  details?: string
}

export function toApiError(status: number, body: unknown): ApiError {
  const { code, error, message, reason, details } = (body ?? {}) as ErrorBody
  const words = message ?? reason ?? details ?? error ?? `The server answered ${status}.`
  return new ApiError(status, code ?? (status === 502 ? 'unreachable' : `http_${status}`), words)
}

async function json<T>(path: string, init?: RequestInit): Promise<T> {
  return (await (await request(path, init)).json()) as T
}

const send = (method: string, body: unknown): RequestInit => ({
  method,
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(body),
})

const thread = (id: string) => `/threads/${encodeURIComponent(id)}`

export const getInfo = (signal?: AbortSignal) =>
  json<{ version: string; agents: Record<string, AgentInfo> }>('/info', signal ? { signal } : {})

export interface ThreadPage {
  threads: ThreadRow[]
  nextCursor: string | null
}

export function listThreads(
  query: { search?: string; archived?: boolean; limit?: number },
  signal?: AbortSignal,
): Promise<ThreadPage> {
  const { search, archived, limit = 50 } = query
  const params = new URLSearchParams({ limit: String(limit) })
  if (search) params.set('search', search)
  if (archived) params.set('includeArchived', 'true')
  return json<ThreadPage>(`/threads?${params}`, signal ? { signal } : {})
}

export const renameThread = (id: string, name: string) => json(thread(id), send('PATCH', { name }))

export const archiveThread = (id: string, archived: boolean) =>
  json(thread(id), send('PATCH', { archived }))

export const deleteThread = (id: string) => json(thread(id), send('DELETE', {}))

/** Null for a thread that does not exist. */
export const getOutline = (id: string) => json<Outline | null>(`${thread(id)}/outline`)

/** Shows the branch that a run is on. */
export const showBranch = (id: string, runId: string) =>
  json<{ head: string }>(`${thread(id)}/head`, send('PUT', { runId }))

export const watchPath = (id: string) => `${thread(id)}/watch`

/** Stops whatever runs on a thread. */
export const stopThread = (agent: string, id: string) =>
  json<{ stopped: boolean }>(
    `/agent/${encodeURIComponent(agent)}/stop/${encodeURIComponent(id)}`,
    send('POST', {}),
  )

/** Runs a turn that failed again, from where it failed. Its stream is left: the thread is followed. */
export async function retryRun(id: string, runId: string): Promise<void> {
  const path = `/chats/${encodeURIComponent(id)}/interactions/${encodeURIComponent(runId)}/retry`
  const { body } = await request(path, { method: 'POST' })
  await body?.cancel()
}

export interface Decision {
  approved?: boolean
  outcome?: 'happened' | 'did_not' | 'skip'
}

export const answerAsk = (id: string, runId: string, askId: string, decision: Decision) =>
  json(
    `/chats/${encodeURIComponent(id)}/interactions/${encodeURIComponent(runId)}/approve`,
    send('POST', { approval_id: askId, ...decision }),
  )
