'use client'

import Link from 'next/link'
import { type FormEvent, useId, useState } from 'react'
import { analyst } from '../../lib/analysis.ts'
import type { ThreadView } from '../../lib/use-link.ts'
import { ago } from '../../lib/words.ts'
import { Notice } from '../chat/notice.tsx'
import { useThreads } from '../threads/threads-context.tsx'

const samples = Array.from({ length: 10 }, (_, i) => `ACC-${String(i + 1).padStart(3, '0')}`)
const longest = 64

/** Which account is analysed. */
export function Choose({ view: { link, problem } }: { view: ThreadView }) {
  const [account, setAccount] = useState('')
  const [wrong, setWrong] = useState<string>()
  const id = useId()
  const start = (event: FormEvent) => {
    event.preventDefault()
    const name = account.trim()
    if (name === '') return setWrong('Choose an account, or type its id.')
    link?.say({ content: `${name}: analyse this account`, forwarded: { account_id: name } })
  }
  return (
    <>
      <form className="choose" onSubmit={start} noValidate>
        <h2>Which account?</h2>
        <p className="quiet">
          Three agents work one after another: one looks the account up, one recalls its history,
          one recommends what to do. You decide on the recommendation.
        </p>
        <div className="form-field">
          <label htmlFor={id}>Account</label>
          <div className="choose-line">
            <input
              id={id}
              value={account}
              maxLength={longest}
              autoComplete="off"
              spellCheck={false}
              placeholder="ACC-001"
              aria-invalid={wrong !== undefined}
              aria-describedby={`${id}-note`}
              onChange={(event) => {
                setAccount(event.target.value)
                setWrong(undefined)
              }}
            />
            <button type="submit" className="button primary" disabled={!link}>
              Analyse
            </button>
          </div>
          <p id={`${id}-note`} className="note" data-problem={wrong !== undefined || undefined}>
            {wrong ?? 'An id of your CRM. Where none is connected there is a sample:'}
          </p>
        </div>
        <fieldset className="samples">
          <legend className="visually-hidden">Sample accounts</legend>
          {samples.map((one) => (
            <button
              key={one}
              type="button"
              className="button"
              aria-pressed={account === one}
              onClick={() => {
                setAccount(one)
                setWrong(undefined)
              }}
            >
              {one}
            </button>
          ))}
        </fieldset>
        <Notice
          problem={problem && { error: problem.error }}
          warning={undefined}
          onClose={() => link?.dismiss()}
        />
      </form>
      <Earlier />
    </>
  )
}

function Earlier() {
  const rows = useThreads().rows?.filter(({ agentId }) => agentId === analyst) ?? []
  if (rows.length === 0) return null
  return (
    <section className="earlier" aria-labelledby="earlier">
      <h2 id="earlier">Earlier analyses</h2>
      <ul>
        {rows.slice(0, 8).map(({ id, name, status, updatedAt }) => (
          <li key={id}>
            <Link href={`/analysis/${encodeURIComponent(id)}`} prefetch={false}>
              {name || 'Untitled'}
            </Link>{' '}
            <span className="quiet">
              {status === 'idle' ? ago(updatedAt, Date.now()) : faces[status]}
            </span>
          </li>
        ))}
      </ul>
    </section>
  )
}

const faces = { running: 'Working…', waiting: 'Waits for a decision' }
