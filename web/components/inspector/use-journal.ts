'use client'

import { useCallback, useEffect, useState } from 'react'
import { getJournal } from '../../lib/api.ts'
import type { JournalEntry } from '../../lib/shapes.ts'
import { errorWords } from '../../lib/words.ts'

const most = 2_000 // entries read at once; the rest is asked for

export interface Journal {
  entries: readonly JournalEntry[]
  /** There is more that was not read. */
  more: boolean
  loading: boolean
  problem: string | undefined
  readOn: () => void
}

/** The entries of one run, as far as they were read. */
export function useJournal(threadId: string, runId: string): Journal {
  const [entries, setEntries] = useState<readonly JournalEntry[]>([])
  const [after, setAfter] = useState(0)
  const [more, setMore] = useState(false)
  const [problem, setProblem] = useState<string>()
  const [loading, setLoading] = useState(true)
  const [turn, setTurn] = useState(0)
  useEffect(() => {
    const gone = new AbortController()
    const read = async () => {
      setLoading(true)
      let [at, count]: [number | null, number] = [after, 0]
      while (at !== null && count < most) {
        const page = await getJournal(threadId, runId, at, gone.signal)
        count += page.entries.length
        at = page.next_after
        const last = page.entries.at(-1)?.seq
        setEntries((known) => [...known, ...page.entries])
        if (at !== null || last !== undefined) setAfter(at ?? last ?? 0)
      }
      setMore(at !== null)
      setProblem(undefined)
    }
    read()
      .catch((error) => !gone.signal.aborted && setProblem(errorWords(error)))
      .finally(() => !gone.signal.aborted && setLoading(false))
    return () => gone.abort()
  }, [threadId, runId, turn])
  const readOn = useCallback(() => setTurn((n) => n + 1), [])
  return { entries, more, loading, problem, readOn }
}
