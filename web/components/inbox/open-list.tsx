'use client'

import { useEffect, useRef, useState } from 'react'
import { ApiError, getApproval } from '../../lib/api.ts'
import { soonestFirst } from '../../lib/inbox.ts'
import type { Approval } from '../../lib/shapes.ts'
import { AskCard } from '../asks/ask-card.tsx'
import { useInbox } from './inbox-context.tsx'
import { Past } from './past.tsx'
import { Row } from './row.tsx'
import { useKeys } from './use-keys.ts'

/** What is open, the soonest deadline first. One is opened at a time; j k a e r are enough. */
export function OpenList() {
  const { open } = useInbox()
  const [chosen, setChosen] = useState(asked)
  const list = useRef<HTMLUListElement>(null)
  const place = useRef(0)
  const { ended, linked, missing } = useEnded(chosen)
  // A row that is decided while it is open keeps its place until another one is chosen.
  const rows = open && (ended ? [...open, ended].sort(soonestFirst) : open)
  const at = rows?.findIndex(({ id }) => id === chosen) ?? -1
  if (at >= 0) place.current = at
  const press = (action: string) => {
    if (chosen === undefined) return
    const card = list.current?.querySelector(`[data-ask="${CSS.escape(chosen)}"] .ask-card`)
    const button = card?.querySelector<HTMLButtonElement>(`.${action}`)
    if (button && !button.disabled) button.click()
  }
  const go = (step: number) => {
    if (!rows || rows.length === 0) return
    // The chosen row may be gone with its chat: the next one has its place.
    const gone = at < 0 && chosen !== undefined
    const from = gone ? place.current - (step > 0 ? 1 : 0) : at
    const next = rows[Math.min(rows.length - 1, Math.max(0, from + step))]
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
  return (
    <>
      <p className="keys" aria-hidden="true">
        <kbd>j</kbd> <kbd>k</kbd> move <kbd>a</kbd> approve <kbd>e</kbd> edit <kbd>r</kbd> reject
      </p>
      {missing && (
        <p className="refused" role="alert">
          There is no such request, or it is not for you.
        </p>
      )}
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
            {one.id === chosen && linked && <Past id={one.id} />}
          </li>
        ))}
      </ul>
    </>
  )
}

/**
 * The chosen request when it is not open: as it ended while the page was open, or, `linked`, as the server
 * has it, where it ended before. `missing`: the server has no such request for this reader.
 */
function useEnded(chosen: string | undefined) {
  const { open, settled } = useInbox()
  const [read, setRead] = useState<{ id: string; approval?: Approval }>()
  const isOpen = open?.some(({ id }) => id === chosen) ?? true // not known yet
  const seen = chosen === undefined ? undefined : settled.get(chosen)
  const unknown = chosen !== undefined && !isOpen && !seen
  useEffect(() => {
    if (!unknown || chosen !== asked()) return
    const gone = new AbortController()
    getApproval(chosen, gone.signal).then(
      (approval) => setRead({ id: chosen, approval }),
      (error) => error instanceof ApiError && error.status === 404 && setRead({ id: chosen }),
    )
    return () => gone.abort()
  }, [unknown, chosen])
  if (isOpen || chosen === undefined) return {}
  if (seen) return { ended: seen }
  if (read?.id !== chosen) return {}
  const { approval } = read
  return approval ? { ended: approval, linked: approval.state !== 'pending' } : { missing: true }
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
