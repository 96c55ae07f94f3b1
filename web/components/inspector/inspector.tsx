'use client'

import Link from 'next/link'
import { useEffect, useId, useMemo, useState } from 'react'
import { duration } from '../../lib/words.ts'
import { PageHeader } from '../shell/page-header.tsx'
import { Icon } from '../ui/icon.tsx'
import { durationsOf, momentAt } from './moment.ts'
import { Standing } from './standing.tsx'
import { Timeline } from './timeline.tsx'
import { useJournal } from './use-journal.ts'

/** One run, entry by entry: what happened, how long it took, what it used, and where it stood at any point. */
export function Inspector({ threadId, runId }: { threadId: string; runId: string }) {
  const { entries, more, loading, live, problem, readOn } = useJournal(threadId, runId)
  const [point, setPoint] = useState<number>()
  const id = useId()
  const at = Math.min(point ?? entries.length, entries.length)
  const now = useMemo(() => momentAt(entries.slice(0, at)), [entries, at])
  const took = useMemo(() => durationsOf(entries), [entries])
  useEffect(() => {
    document.title = 'Run · Handrail'
  }, [])
  const first = Date.parse(entries[0]?.at ?? '')
  const current = entries[at - 1]
  return (
    <div className="inbox">
      <PageHeader title="Run, step by step">
        {live && (
          <p className="connection" data-phase="live">
            <span className="dot" aria-hidden="true" />
            Under way
          </p>
        )}
        <button
          type="button"
          className="icon-button"
          aria-label={more ? 'Read on' : 'Look again'}
          title={more ? 'Read on' : 'Look again'}
          disabled={loading}
          onClick={readOn}
        >
          <Icon name="again" />
        </button>
        <Link className="button" href={`/t/${encodeURIComponent(threadId)}`} prefetch={false}>
          To the chat
        </Link>
      </PageHeader>
      <div className="scroller">
        <div className="column">
          {problem !== undefined && <p role="alert">{problem}</p>}
          {entries.length === 0 && problem === undefined && (
            <p className="quiet">Reading the journal…</p>
          )}
          {entries.length > 0 && (
            <>
              <div className="point">
                <label htmlFor={id}>State after entry {current?.seq ?? 0}</label>
                <input
                  id={id}
                  type="range"
                  min={1}
                  max={entries.length}
                  value={at}
                  aria-valuetext={`entry ${at} of ${entries.length}, ${current?.kind}`}
                  onChange={(event) => setPoint(Number(event.target.value))}
                />
                <span className="quiet">
                  {at} of {entries.length} · {duration(Date.parse(current?.at ?? '') - first || 0)}{' '}
                  after its beginning
                </span>
              </div>
              <Standing moment={now} />
              <Timeline entries={entries} at={at} first={first} took={took} onPoint={setPoint} />
            </>
          )}
        </div>
      </div>
    </div>
  )
}
