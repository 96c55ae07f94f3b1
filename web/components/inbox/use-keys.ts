'use client'

import { useEffect, useRef } from 'react'

/** Single keys, but not for who writes something, and not with a key that means something to the browser. */
export function useKeys(keys: Record<string, () => void>): void {
  const current = useRef(keys)
  current.current = keys
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      const { ctrlKey, metaKey, altKey, repeat, target } = event
      const busy = (target as HTMLElement | null)?.closest('input, textarea, select, dialog[open]')
      if (ctrlKey || metaKey || altKey || repeat || busy) return
      const act = current.current[event.key]
      if (!act) return
      event.preventDefault()
      act()
    }
    document.addEventListener('keydown', press)
    return () => document.removeEventListener('keydown', press)
  }, [])
}
