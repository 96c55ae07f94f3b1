import { RuntimeError } from '../../core/errors.ts'
import type { Account, Crm } from './crm.ts'

export interface ZohoAccess {
  clientId: string
  clientSecret: string
  refreshToken: string
  /** Where tokens come from: another one for each of Zoho's data centres. */
  accountsUrl: string
  /** Where the CRM is; by default the one that comes with the token says. */
  apiUrl?: string
}

interface Token {
  value: string
  api: string
  until: number
}

type Row = Record<string, unknown>

/** Milliseconds before its end in which a token is not used any more. */
const margin = 60_000
/** Deals and notes of one account. */
const perPage = 20

/** Zoho CRM, by its REST API v8. Reads only. */
export function zohoCrm(access: ZohoAccess, now: () => number): Crm {
  let token: Promise<Token> | undefined

  /** One for all who ask at once. */
  const tokenFor = async (signal: AbortSignal): Promise<Token> => {
    const known = await token?.catch(() => undefined)
    if (known && now() < known.until - margin) return known
    token = freshToken(access, now, signal)
    return await token
  }

  /** The rows of a page; none where there is nothing. */
  const rows = async (path: string, signal: AbortSignal): Promise<Row[]> => {
    for (let tries = 1; ; tries++) {
      const { value, api } = await tokenFor(signal)
      const headers = { authorization: `Zoho-oauthtoken ${value}` }
      const response = await reach(`${api}/crm/v8/${path}`, { headers, signal })
      if (response.status === 204 || response.status === 404) return []
      const body = await bodyOf(response)
      if (response.ok) return Array.isArray(body.data) ? (body.data as Row[]) : []
      // Taken back before its time: the next one may do.
      if (response.status === 401 && tries === 1) token = undefined
      else throw refusal(response, body)
    }
  }

  return {
    source: 'zoho',
    async account(id, signal) {
      if (!/^\d{1,30}$/.test(id)) return undefined
      const [row] = await rows(`Accounts/${id}?fields=${accountFields}`, signal)
      if (!row) return undefined
      const more = `per_page=${perPage}`
      const [deals, notes] = await Promise.all([
        rows(`Accounts/${id}/Deals?fields=Deal_Name,Stage,Amount,Closing_Date&${more}`, signal),
        rows(`Accounts/${id}/Notes?fields=Note_Content,Modified_Time&${more}`, signal),
      ])
      return accountOf(id, row, deals, notes)
    },
  }
}

async function freshToken(access: ZohoAccess, now: () => number, signal: AbortSignal) {
  const body = new URLSearchParams({
    grant_type: 'refresh_token',
    client_id: access.clientId,
    client_secret: access.clientSecret,
    refresh_token: access.refreshToken,
  })
  const url = `${access.accountsUrl}/oauth/v2/token`
  const response = await reach(url, { method: 'POST', body, signal })
  const { access_token, expires_in, api_domain, error } = await bodyOf(response)
  // Zoho tells of wrong credentials with a 200.
  if (!response.ok || typeof access_token !== 'string') {
    const why = typeof error === 'string' ? error : `status ${response.status}`
    throw new RuntimeError('authentication', `Zoho gave no access token: ${why}.`)
  }
  const api = access.apiUrl ?? (typeof api_domain === 'string' ? api_domain : undefined)
  if (api === undefined)
    throw new RuntimeError('agent_failed', 'Zoho did not say where its API is.')
  const seconds = typeof expires_in === 'number' ? expires_in : 3_600
  return { value: access_token, api, until: now() + seconds * 1_000 }
}

async function reach(url: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(url, { ...init, redirect: 'error' })
  } catch (cause) {
    if (init.signal?.aborted) throw init.signal.reason
    throw new RuntimeError('agent_failed', 'Zoho cannot be reached.', { cause })
  }
}

async function bodyOf(response: Response): Promise<Row> {
  const body: unknown = await response.json().catch(() => undefined)
  return typeof body === 'object' && body !== null ? (body as Row) : {}
}

function refusal({ status }: Response, { code, message }: Row): RuntimeError {
  const told = `Zoho refused (${status}${typeof code === 'string' ? ` ${code}` : ''}): ${String(message ?? '')}`
  if (status === 429) return new RuntimeError('rate_limit', told)
  return new RuntimeError(
    status === 401 || status === 403 ? 'authentication' : 'agent_failed',
    told,
  )
}

const accountFields =
  'Account_Name,Industry,Owner,Account_Status,Annual_Revenue,Last_Activity_Time,Rating'

const text = (value: unknown) => (typeof value === 'string' && value !== '' ? value : null)
const number = (value: unknown) => (typeof value === 'number' ? value : null)

function accountOf(account_id: string, row: Row, deals: Row[], notes: Row[]): Account {
  return {
    account_id,
    source: 'zoho',
    name: text(row.Account_Name) ?? account_id,
    industry: text(row.Industry),
    owner: text((row.Owner as Row | undefined)?.name),
    status: text(row.Account_Status) ?? text(row.Rating),
    annual_revenue: number(row.Annual_Revenue),
    last_activity: text(row.Last_Activity_Time),
    deals: deals.map((deal) => ({
      name: text(deal.Deal_Name) ?? 'a deal without a name',
      stage: text(deal.Stage) ?? 'unknown',
      amount: number(deal.Amount),
      closing_date: text(deal.Closing_Date),
    })),
    notes: notes.map((note) => ({
      at: text(note.Modified_Time),
      text: (text(note.Note_Content) ?? '').slice(0, 1_000),
    })),
  }
}
