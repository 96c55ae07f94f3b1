import type { Account, Crm } from './crm.ts'

type Row = [name: string, industry: string, owner: string, status: string, revenue: number]
type Deal = [name: string, stage: string, amount: number, closing: string]

/** Ten accounts, invented. */
const rows: readonly { row: Row; last: string; deals: Deal[]; notes: [string, string][] }[] = [
  {
    row: ['Northwind Tools', 'Manufacturing', 'Ines Duarte', 'active', 4_200_000],
    last: '2026-09-30',
    deals: [['Renewal 2027', 'Negotiation', 96_000, '2026-12-15']],
    notes: [['2026-09-30', 'Asked for a price that holds for two years.']],
  },
  {
    row: ['Harbour Foods', 'Food', 'Tomas Lind', 'at risk', 1_150_000],
    last: '2026-06-02',
    deals: [['Support plan', 'Stalled', 18_000, '2026-07-31']],
    notes: [['2026-06-02', 'Three open tickets; the contact is annoyed.']],
  },
  {
    row: ['Lumen Clinics', 'Health', 'Ines Duarte', 'active', 8_900_000],
    last: '2026-10-21',
    deals: [['Second region', 'Proposal', 240_000, '2027-02-01']],
    notes: [['2026-10-21', 'The new head of operations wants a reference.']],
  },
  {
    row: ['Brightway Schools', 'Education', 'Mara Okoye', 'new', 640_000],
    last: '2026-10-05',
    deals: [['Pilot', 'Qualification', 12_000, '2026-11-30']],
    notes: [],
  },
  {
    row: ['Cobalt Freight', 'Logistics', 'Tomas Lind', 'dormant', 2_300_000],
    last: '2026-01-18',
    deals: [],
    notes: [['2026-01-18', 'Changed their system; said to call again in autumn.']],
  },
  {
    row: ['Fenwick Bank', 'Finance', 'Mara Okoye', 'active', 31_000_000],
    last: '2026-10-12',
    deals: [
      ['Audit add-on', 'Proposal', 130_000, '2026-12-01'],
      ['Renewal 2027', 'Closed won', 410_000, '2026-09-01'],
    ],
    notes: [['2026-10-12', 'Security review passed.']],
  },
  {
    row: ['Grove Hotels', 'Travel', 'Ines Duarte', 'at risk', 3_700_000],
    last: '2026-07-09',
    deals: [['Renewal 2026', 'Closed lost', 55_000, '2026-07-01']],
    notes: [['2026-07-09', 'Moved to a cheaper offer for one of four houses.']],
  },
  {
    row: ['Iris Media', 'Media', 'Tomas Lind', 'active', 920_000],
    last: '2026-10-25',
    deals: [['Team seats', 'Negotiation', 9_600, '2026-11-15']],
    notes: [],
  },
  {
    row: ['Juniper Energy', 'Energy', 'Mara Okoye', 'active', 12_500_000],
    last: '2026-08-14',
    deals: [['Field rollout', 'Proposal', 310_000, '2027-03-31']],
    notes: [['2026-08-14', 'Budget round ends in November.']],
  },
  {
    row: ['Kestrel Labs', 'Research', 'Ines Duarte', 'new', 410_000],
    last: '2026-10-28',
    deals: [],
    notes: [['2026-10-28', 'Found us through a talk.']],
  },
]

/** A small CRM for those who have none at hand: ACC-001 to ACC-010. */
export const sampleCrm = (): Crm => ({
  source: 'sample',
  async account(id) {
    const found = rows[Number(/^ACC-(\d{3})$/i.exec(id)?.[1] ?? 0) - 1]
    return found && accountOf(id.toUpperCase(), found)
  },
})

function accountOf(
  account_id: string,
  { row, last, deals, notes }: (typeof rows)[number],
): Account {
  const [name, industry, owner, status, annual_revenue] = row
  return {
    account_id,
    source: 'sample',
    name,
    industry,
    owner,
    status,
    annual_revenue,
    last_activity: last,
    deals: deals.map(([deal, stage, amount, closing_date]) => {
      return { name: deal, stage, amount, closing_date }
    }),
    notes: notes.map(([at, text]) => ({ at, text })),
  }
}
