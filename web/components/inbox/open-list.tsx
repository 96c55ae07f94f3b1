'use client'

import { useRef, useState } from 'react'
import type { Approval } from '../../lib/shapes.ts'
import { AskCard } from '../asks/ask-card.tsx'
import { Confirm } from '../ui/confirm.tsx'
import { useInbox } from './inbox-context.tsx'
import { Row } from './row.tsx'
import { useKeys } from './use-keys.ts'

/** What is open, the soonest deadline first. One is opened at a time; j k a e r are enough. */
export function OpenList() {
  const { open, settled } = useInbox()
  const [chosen, setChosen] = useState(asked)
  const [sure, setSure] = useState(false)
  const list = useRef<HTMLUListElement>(null)
  // What is being looked at stays where it is when somebody else decides it.
  const ended = chosen === undefined ? undefined : settled.get(chosen)
  const rows = ended && !open?.some(({ id }) => id === chosen) ? [ended, ...(open ?? [])] : open
  const at = rows?.findIndex(({ id }) => id === chosen) ?? -1
  const press = (action: string) => {
    const card = list.current?.querySelector('.ask-card')
    const button = card?.querySelector<HTMLButtonElement>(`.${action}`)
    if (!button || button.disabled) return
    if (action === 'approve' && card?.querySelector('.risk[data-level="high"]')) setSure(true)
    else button.click()
  }
  const go = (step: number) => {
    if (!rows || rows.length === 0) return
    const next = rows[Math.min(rows.length - 1, Math.max(0, at + step))]
    setChosen(next?.id)
    const row = list.current?.querySelector<HTMLElement>(`[data-ask="${next?.id}"] .row`)
    row?.focus()
  }
  useKeys({
    j: () => go(1),
    k: () => go(-1),
    a: () => press('approve'),
    e: () => press('edit'),
    r: () => press('reject'),
  })
  if (!rows) return <p className="quiet">Looking for what is open…</p>
  const title = rows[at]?.title ?? ''
  return (
    <>
      <p className="keys" aria-hidden="true">
        <kbd>j</kbd> <kbd>k</kbd> move <kbd>a</kbd> approve <kbd>e</kbd> edit <kbd>r</kbd> reject
      </p>
      {rows.length === 0 && (
        <div className="page-note">
          <h2>Nothing waits for you</h2>
          <p className="quiet">Questions of all chats come here as they are asked.</p>
        </div>
      )}
      <ul className="rows" ref={list} aria-label="Open decisions">
        {rows.map((one) => (
          <li key={one.id} data-ask={one.id} data-chosen={one.id === chosen || undefined}>
            <Row
              approval={one}
              chosen={one.id === chosen}
              onChoose={() => setChosen(one.id === chosen ? undefined : one.id)}
            />
            {one.id === chosen && one.state === 'pending' && (
              <AskCard id={one.id} title={one.title} onDecided={() => {}} />
            )}
            {one.id === chosen && one.state !== 'pending' && <Over approval={one} />}
          </li>
        ))}
      </ul>
      {sure && (
        <Confirm
          title={`${title}?`}
          text="This is marked as a high risk."
          action="Approve it"
          keep="Not now"
          onConfirm={() => {
            setSure(false)
            list.current?.querySelector<HTMLButtonElement>('.ask-card .approve')?.click()
          }}
          onCancel={() => setSure(false)}
        />
      )}
    </>
  )
}

function Over({ approval: { id, state, decided_by } }: { approval: Approval }) {
  return (
    <p className="settled" role="status" data-ask={id} tabIndex={-1}>
      {state === 'timeout'
        ? 'Nobody decided in time.'
        : `It is ${state}${decided_by === null ? '' : ` by ${decided_by}`}.`}
    </p>
  )
}

/** The one that the address names: `/inbox?ask=...`. */
const asked = (): string | undefined =>
  typeof location === 'undefined'
    ? undefined
    : (new URLSearchParams(location.search).get('ask') ?? undefined)
