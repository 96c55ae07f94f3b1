'use client'

import { useEffect, useState } from 'react'

/** What is being written in a chat outlives a reload. */
export function useDraft(threadId: string) {
  const name = `handrail.draft.${threadId}`
  const [text, setText] = useState(() =>
    typeof sessionStorage === 'undefined' ? '' : (sessionStorage.getItem(name) ?? ''),
  )
  useEffect(() => {
    try {
      if (text === '') sessionStorage.removeItem(name)
      else sessionStorage.setItem(name, text)
    } catch {
      // More than a browser keeps: it can be sent, and does not outlive a reload.
    }
  }, [name, text])
  return [text, setText] as const
}
