'use client'

import { useEffect, useState } from 'react'
import { ApiError, getApproval } from '../../lib/api.ts'
import { pause } from '../../lib/link/waiting.ts'
import type { WholeApproval } from '../../lib/shapes.ts'

/** A question as the server tells it, however often it has to be asked; `others`: it is not for the reader. */
export function useApproval(id: string) {
  const [approval, setApproval] = useState<WholeApproval>()
  const [error, setError] = useState<unknown>()
  useEffect(() => {
    const gone = new AbortController()
    const read = async (tries: number): Promise<void> => {
      try {
        setApproval(await getApproval(id, gone.signal))
        setError(undefined)
      } catch (problem) {
        if (gone.signal.aborted) return
        setError(problem)
        if (isForOthers(problem)) return
        await pause(tries, gone.signal)
        if (!gone.signal.aborted) await read(tries + 1)
      }
    }
    void read(1)
    return () => gone.abort()
  }, [id])
  const others = isForOthers(error)
  const words = others ? 'This is not for you to decide.' : tryingWords
  return { approval, problem: error === undefined ? undefined : words, others }
}

const tryingWords = 'What is asked could not be read. Trying again…'

const isForOthers = (problem: unknown) =>
  problem instanceof ApiError && (problem.status === 404 || problem.status === 403)
