'use client'

import { useEffect, useState } from 'react'
import { getAudit, listSettled } from '../../lib/api.ts'
import type { Approval, Verdict } from '../../lib/shapes.ts'
import { errorWords, moment } from '../../lib/words.ts'
import { useInbox } from './inbox-context.tsx'
import { Past } from './past.tsx'

/** What was decided: who, when, on which arguments, and whether the audit finds it as it was written. */
export function History() {
  const { settled } = useInbox()
  const { rows, more, problem, loadMore } = useSettled(settled.size)
  const verdicts = useVerdicts(rows ?? [])
  const [chosen, setChosen] = useState<string>()
  const failed = problem !== undefined && (
    <p className="refused" role="alert">
      {problem}
    </p>
  )
  if (!rows) return failed || <p className="quiet">Reading what was decided…</p>
  return (
    <>
      {rows.length === 0 && !more && <p className="quiet">Nothing was decided yet.</p>}
      <ul className="rows" aria-label="Past decisions">
        {rows.map((one) => (
          <li key={one.id}>
            <button
              type="button"
              className="row"
              aria-expanded={one.id === chosen}
              onClick={() => setChosen(one.id === chosen ? undefined : one.id)}
            >
              <span className="badge" data-state={one.state}>
                {states[one.state] ?? one.state}
              </span>
              {one.edited && <span className="badge">edited</span>}
              <span className="title">{one.title}</span>
              <span className="quiet">
                {one.decided_by ?? 'nobody'} · {moment(one.decided_at ?? one.deadline)}
              </span>
            </button>
            {one.chat_id !== undefined && <Seal verdict={verdicts.get(one.chat_id)} />}
            {one.id === chosen && <Past id={one.id} />}
          </li>
        ))}
      </ul>
      {failed}
      {more && (
        <button type="button" className="button" onClick={loadMore}>
          Show more
        </button>
      )}
    </>
  )
}

const states: Record<string, string> = { timeout: 'expired' }

const seals: Record<Verdict['verdict'], string> = {
  ok: 'Audit: as it was written',
  broken: 'Audit: changed since it was written',
  unchained: 'Audit: not kept on this server',
  erased: 'Audit: parts were erased, the rest is as it was written',
}

function Seal({ verdict }: { verdict: Verdict | undefined }) {
  if (!verdict) return null
  return (
    <p className="seal" data-verdict={verdict.verdict}>
      {seals[verdict.verdict]}
    </p>
  )
}

function useSettled(changes: number) {
  const [rows, setRows] = useState<Approval[]>()
  const [cursor, setCursor] = useState<string | null>(null)
  const [problem, setProblem] = useState<string>()
  useEffect(() => {
    const gone = new AbortController()
    listSettled(undefined, gone.signal).then(
      (page) => {
        setRows(page.approvals)
        setCursor(page.next_cursor)
        setProblem(undefined)
      },
      (error) => !gone.signal.aborted && setProblem(errorWords(error)),
    )
    return () => gone.abort()
  }, [changes])
  const loadMore = async () => {
    if (cursor === null) return
    try {
      const page = await listSettled(cursor)
      setRows([...(rows ?? []), ...page.approvals])
      setCursor(page.next_cursor)
      setProblem(undefined)
    } catch (error) {
      setProblem(errorWords(error))
    }
  }
  return { rows, more: cursor !== null, problem, loadMore }
}

/** Once for each chat: it reads all of it. */
function useVerdicts(rows: readonly Approval[]): ReadonlyMap<string, Verdict> {
  const [verdicts, setVerdicts] = useState<ReadonlyMap<string, Verdict>>(new Map())
  const chats = [...new Set(rows.flatMap(({ chat_id }) => chat_id ?? []))].join('\n')
  useEffect(() => {
    let gone = false
    const read = async () => {
      for (const id of chats.split('\n').filter(Boolean)) {
        const verdict = await getAudit(id).catch(() => undefined)
        if (gone) return
        if (verdict) setVerdicts((known) => new Map(known).set(id, verdict))
      }
    }
    void read()
    return () => {
      gone = true
    }
  }, [chats])
  return verdicts
}
