'use client'

import { useEffect, useState } from 'react'

/** What is being written in a chat outlives a reload. */
export function useDraft(threadId: string) {
  const name = `handrail.draft.${threadId}`
  const [text, setText] = useState(() =>
    typeof sessionStorage === 'undefined' ? '' : (sessionStorage.getItem(name) ?? ''),
  )
  useEffect(() => {
    if (text === '') sessionStorage.removeItem(name)
    else sessionStorage.setItem(name, text)
  }, [name, text])
  return [text, setText] as const
}
