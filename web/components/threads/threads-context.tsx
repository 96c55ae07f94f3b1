'use client'

import {
  createContext,
  type ReactNode,
  useCallback,
  useContext,
  useEffect,
  useMemo,
  useRef,
  useState,
} from 'react'
import { ApiError, listThreads } from '../../lib/api.ts'
import type { ThreadRow } from '../../lib/shapes.ts'
import { errorWords, wordsFor } from '../../lib/words.ts'
import { useInbox } from '../inbox/inbox-context.tsx'

export interface Threads {
  rows: ThreadRow[] | undefined
  problem: string | undefined
  more: boolean
  search: string
  archived: boolean
  setSearch: (search: string) => void
  setArchived: (archived: boolean) => void
  loadMore: () => void
  /** Something changed: the list is read again. */
  refresh: () => void
}

const ThreadsContext = createContext<Threads | undefined>(undefined)

export function useThreads(): Threads {
  const threads = useContext(ThreadsContext)
  if (!threads) throw new Error('useThreads is for components below <ThreadsProvider>')
  return threads
}

/** Milliseconds between two looks, and while something works, which ends soon. */
const every = 10_000
const oftener = 2_000
const page = 50

/**
 * The list of chats. There is no stream of it: while somebody looks, it is read every few seconds (oftener
 * while one of them works), and at once when the inbox hears that somebody is needed somewhere, or not any more.
 */
export function ThreadsProvider({ children }: { children: ReactNode }) {
  const [rows, setRows] = useState<ThreadRow[]>()
  const [more, setMore] = useState(false)
  const [limit, setLimit] = useState(page)
  const [search, setSearch] = useState('')
  const [archived, setArchived] = useState(false)
  const [problem, setProblem] = useState<string>()
  const read = useRef(() => {})
  useEffect(() => {
    const gone = new AbortController()
    let timer: ReturnType<typeof setTimeout> | undefined
    const look = async () => {
      clearTimeout(timer)
      let next = every
      try {
        const found = await listThreads({ search, archived, limit }, gone.signal)
        setRows(found.threads)
        setMore(found.nextCursor !== null)
        setProblem(undefined)
        if (found.threads.some(({ status }) => status === 'running')) next = oftener
      } catch (error) {
        if (gone.signal.aborted) return
        setProblem(error instanceof ApiError ? wordsFor(error) : errorWords(error))
      }
      clearTimeout(timer)
      timer = setTimeout(() => document.visibilityState === 'visible' && look(), next)
    }
    const shown = () => document.visibilityState === 'visible' && void look()
    read.current = () => void look()
    timer = setTimeout(look, search === '' ? 0 : 200)
    document.addEventListener('visibilitychange', shown)
    return () => {
      gone.abort()
      clearTimeout(timer)
      document.removeEventListener('visibilitychange', shown)
    }
  }, [search, archived, limit])
  const { open } = useInbox()
  const waiting = open?.map(({ id }) => id).join()
  useEffect(() => {
    if (waiting !== undefined) read.current()
  }, [waiting])
  const refresh = useCallback(() => read.current(), [])
  const loadMore = useCallback(() => setLimit((now) => Math.min(1_000, now + page)), [])
  const value = useMemo(() => {
    const state = { rows, problem, more, search, archived }
    return { ...state, setSearch, setArchived, loadMore, refresh }
  }, [rows, problem, more, search, archived, loadMore, refresh])
  return <ThreadsContext.Provider value={value}>{children}</ThreadsContext.Provider>
}
