'use client'

import type { Account, Note } from '../../lib/analysis.ts'

const amount = (value: number | null) => (value === null ? '–' : value.toLocaleString())
const day = (iso: string | null) =>
  iso === null
    ? '–'
    : new Date(iso).toLocaleDateString([], { day: 'numeric', month: 'short', year: 'numeric' })

/** What the CRM knows of an account. */
export function AccountView({ account }: { account: Account }) {
  const { account_id, name, source, industry, owner, status, annual_revenue, last_activity } =
    account
  const facts: [string, string | null][] = [
    ['Industry', industry],
    ['Owner', owner],
    ['Status', status],
    ['Revenue', annual_revenue === null ? null : `${amount(annual_revenue)} a year`],
    ['Last activity', last_activity === null ? null : day(last_activity)],
  ]
  return (
    <>
      <h3>
        {name} <span className="quiet">{account_id}</span>{' '}
        {source === 'sample' && <span className="badge">sample data, not from a real CRM</span>}
      </h3>
      <dl className="facts two">
        {facts.map(
          ([what, value]) =>
            value !== null && (
              <div key={what}>
                <dt>{what}</dt>
                <dd>{value}</dd>
              </div>
            ),
        )}
      </dl>
      <Deals deals={account.deals} />
      <Notes notes={account.notes} />
    </>
  )
}

function Deals({ deals }: Pick<Account, 'deals'>) {
  if (deals.length === 0) return <p className="note">No deals.</p>
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached with the keyboard
    <section className="table-box" aria-label="Deals" tabIndex={0}>
      <table>
        <thead>
          <tr>
            <th>Deal</th>
            <th>Stage</th>
            <th className="number">Amount</th>
            <th>Closing</th>
          </tr>
        </thead>
        <tbody>
          {deals.map(({ name, stage, amount: sum, closing_date }) => (
            <tr key={name}>
              <td>{name}</td>
              <td>{stage}</td>
              <td className="number">{amount(sum)}</td>
              <td>{day(closing_date)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}

export function Notes({ notes }: { notes: readonly Note[] }) {
  if (notes.length === 0) return null
  return (
    <ul className="notes" aria-label="Notes">
      {notes.map(({ at, text }) => (
        <li key={`${at} ${text}`}>
          “{text}” <span className="quiet">{at !== null && day(at)}</span>
        </li>
      ))}
    </ul>
  )
}
