'use client'

import { useCallback, useEffect, useState } from 'react'
import { ApiError, decideApproval } from '../../lib/api.ts'
import type { Decision } from '../../lib/shapes.ts'
import { errorWords } from '../../lib/words.ts'
import { useAnnounce } from '../shell/announcer.tsx'

/** Milliseconds before a card can be decided: a key pressed as it appears was meant for something else. */
const settling = 700

export interface Deciding {
  /** False while it is sent, and in the first moment of the card. */
  ready: boolean
  problem: string | undefined
  /** What of the answer is wrong, as a path within it: `amount`. */
  field: string | undefined
  decide: (decision: Decision, done?: string) => Promise<void>
}

interface Asked {
  id: string
  /** Of what is shown: the decision is on this and nothing else. */
  digest: string | undefined
}

/** Sends a decision on exactly what is shown. One that came too late is no error: the card tells who was first. */
export function useDecide(asked: Asked, onDecided: () => void): Deciding {
  const [armed, setArmed] = useState(false)
  const [busy, setBusy] = useState(false)
  const [refused, setRefused] = useState<{ words: string; field: string | undefined }>()
  const announce = useAnnounce()
  const { id, digest } = asked
  useEffect(() => {
    const timer = setTimeout(() => setArmed(true), settling)
    return () => clearTimeout(timer)
  }, [])
  const decide = useCallback(
    async (decision: Decision, done = 'Decided.') => {
      setBusy(true)
      setRefused(undefined)
      try {
        await decideApproval(id, { ...decision, ...(digest !== undefined && { digest }) })
        announce(done)
        onDecided()
      } catch (error) {
        if (isLate(error)) {
          announce('It was decided elsewhere.')
          return onDecided()
        }
        const field = error instanceof ApiError ? error.field : undefined
        setRefused({
          words: plain(errorWords(error), field),
          field: field?.replace(/^body\.\w+\.?/, ''),
        })
        setBusy(false)
      }
    },
    [id, digest, onDecided, announce],
  )
  return { ready: armed && !busy, problem: refused?.words, field: refused?.field, decide }
}

const isLate = (error: unknown) =>
  error instanceof ApiError && (error.code === 'ask_settled' || error.code === 'ask_not_found')

/** Without the name of the field, which is shown where it belongs. */
const plain = (words: string, field: string | undefined) =>
  field !== undefined && words.startsWith(`${field}: `) ? words.slice(field.length + 2) : words
