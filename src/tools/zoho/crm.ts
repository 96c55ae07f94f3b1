/** What is known of an account, wherever it is kept. */
export interface Account {
  account_id: string
  /** `sample`: invented, and labelled so. */
  source: 'zoho' | 'sample'
  name: string
  industry: string | null
  owner: string | null
  status: string | null
  annual_revenue: number | null
  last_activity: string | null
  deals: { name: string; stage: string; amount: number | null; closing_date: string | null }[]
  notes: { at: string | null; text: string }[]
}

/** Where accounts are looked up. */
export interface Crm {
  readonly source: Account['source']
  /** Undefined when there is no such account. */
  account(id: string, signal: AbortSignal): Promise<Account | undefined>
}
