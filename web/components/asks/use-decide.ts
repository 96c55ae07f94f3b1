'use client'

import { useCallback, useEffect, useLayoutEffect, useRef, useState } from 'react'
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
  const acted = useRef(false)
  // The card goes, and the focus with it: it is put where one would go on.
  useLayoutEffect(() => () => void (acted.current && goOn(id)), [id])
  const decide = useCallback(
    async (decision: Decision, done = 'Decided.') => {
      acted.current = true
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
        goOn(id)
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

/**
 * To the question itself where it is still there, to the next one, to the line that tells how it ended, or to
 * where one writes. Never onto a button, and not for who went elsewhere.
 */
function goOn(id: string): void {
  requestAnimationFrame(() => {
    if (document.activeElement !== null && document.activeElement !== document.body) return
    const places = [
      `.ask-card[data-ask="${CSS.escape(id)}"] h2`,
      '.ask-card h2',
      `.settled[data-ask="${CSS.escape(id)}"]`,
      '.composer textarea',
    ]
    const found = places.map((one) => document.querySelector<HTMLElement>(one)).find(Boolean)
    found?.focus({ preventScroll: found.matches('.settled') })
  })
}
