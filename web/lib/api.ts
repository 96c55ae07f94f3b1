import { keyHeaders, refused } from './key.ts'
import type {
  AgentInfo,
  Approval,
  Budget,
  Decision,
  Grant,
  JournalPage,
  Outline,
  ThreadRow,
  Verdict,
  WholeApproval,
} from './shapes.ts'

/** The page's own address of the runtime. */
export const base = '/api/copilotkit'

/** The runtime said no, or did not answer. */
export class ApiError extends Error {
  readonly status: number
  readonly code: string
  /** What of the request is wrong, as the runtime names it. */
  readonly field: string | undefined

  constructor(status: number, code: string, message: string, field?: string) {
    super(message)
    this.status = status
    this.code = code
    this.field = field
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
  if (response.status === 401) refused()
  throw toApiError(response.status, await response.json().catch(() => ({})))
}

interface ErrorBody {
  code?: string
  error?: string
  message?: string
  reason?: string
  details?: string
  field?: string
}

export function toApiError(status: number, body: unknown): ApiError {
  const told = (body ?? {}) as ErrorBody
  const inner: unknown = told.error // our own routes have all of it in there
  const said = typeof inner === 'object' && inner !== null ? (inner as ErrorBody) : told
  const { code, error, message, reason, details, field } = said
  const words = message ?? reason ?? details ?? error ?? `The server answered ${status}.`
  const known = code ?? (status === 502 ? 'unreachable' : `http_${status}`)
  return new ApiError(status, known, words, field)
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
  if (archived) params.set('archived', 'true')
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

const approval = (id: string) => `/approvals/${encodeURIComponent(id)}`

/** An approval with its card. */
export const getApproval = (id: string, signal?: AbortSignal) =>
  json<WholeApproval>(approval(id), signal ? { signal } : {})

export const decideApproval = (id: string, decision: Decision) =>
  json<{ state: string }>(approval(id), send('POST', decision))

export const listOpen = (signal: AbortSignal) =>
  json<{ approvals: Approval[] }>('/approvals?limit=200', { signal })

/** What was decided before, the latest first. */
export const listSettled = (cursor: string | undefined, signal?: AbortSignal) => {
  const query = new URLSearchParams({ state: 'settled', limit: '50', ...(cursor && { cursor }) })
  return json<{ approvals: Approval[]; next_cursor: string | null }>(
    `/approvals?${query}`,
    signal ? { signal } : {},
  )
}

export const inboxPath = (after: string | undefined) =>
  `/approvals/stream${after === undefined ? '' : `?after=${encodeURIComponent(after)}`}`

export const getAudit = (id: string) => json<Verdict>(`${thread(id)}/audit`)

export const getGrants = (id: string) => json<{ grants: Grant[] }>(`${thread(id)}/grants`)

export const revokeGrant = (id: string, grantId: string) =>
  request(`${thread(id)}/grants/${encodeURIComponent(grantId)}`, { method: 'DELETE' })

/** An empty chat; one that is there already will do as well. */
export const createChat = (id: string, agent: string) =>
  request('/chats', send('POST', { id, agent })).catch((problem: unknown) => {
    if (!(problem instanceof ApiError && problem.code === 'thread_exists')) throw problem
  })

export const getBudget = (id: string) => json<Budget>(`${thread(id)}/governor`)

export const setBudget = (id: string, change: BudgetChange) =>
  json<Budget>(`${thread(id)}/governor`, send('PUT', change))

export interface BudgetChange {
  isHitlEnabled?: boolean
  actionLimit?: number
  /** Null: no limit. */
  tokenLimit?: number | null
  moneyLimit?: number | null
  reset?: boolean
}

export const getJournal = (id: string, run: string, after: number, signal?: AbortSignal) =>
  json<JournalPage>(
    `${thread(id)}/journal?${new URLSearchParams({ run, after: String(after) })}`,
    signal ? { signal } : {},
  )
