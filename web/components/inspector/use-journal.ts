'use client'

import { useCallback, useEffect, useState } from 'react'
import { getJournal, watchPath } from '../../lib/api.ts'
import { events } from '../../lib/events.ts'
import { pause } from '../../lib/link/waiting.ts'
import type { JournalEntry } from '../../lib/shapes.ts'
import { errorWords } from '../../lib/words.ts'

const most = 2_000 // entries read at once; the rest is asked for

export interface Journal {
  entries: readonly JournalEntry[]
  /** There is more that was not read. */
  more: boolean
  loading: boolean
  /** The run has not ended: what is added comes by itself. */
  live: boolean
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
        if (gone.signal.aborted) return
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
  const live = entries.length > 0 && !entries.some(({ kind }) => ends.has(kind))
  useChanges(threadId, live, readOn)
  return { entries, more, loading, live, problem, readOn }
}

const ends = new Set(['run.completed', 'run.failed', 'run.cancelled'])
const pace = 300 // milliseconds between two looks

/** Calls when something was added to the thread, while it is wanted. */
function useChanges(threadId: string, wanted: boolean, changed: () => void): void {
  useEffect(() => {
    if (!wanted) return
    const gone = new AbortController()
    let timer: ReturnType<typeof setTimeout> | undefined
    const look = () => {
      timer = undefined
      changed()
    }
    const watch = async () => {
      for (let tries = 1; !gone.signal.aborted; tries++) {
        try {
          for await (const _ of events(watchPath(threadId), gone.signal)) {
            tries = 1
            timer ??= setTimeout(look, pace)
          }
        } catch {
          // It is tried again: what was missed is read with the next change.
        }
        await pause(tries, gone.signal)
      }
    }
    void watch()
    return () => {
      gone.abort()
      clearTimeout(timer)
    }
  }, [threadId, wanted, changed])
}
