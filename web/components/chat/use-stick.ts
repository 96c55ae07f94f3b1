'use client'

import { type RefObject, useCallback, useEffect, useRef, useState } from 'react'

const near = 80 // pixels from the end that still count as being there

/**
 * Keeps the end in sight while it grows, unless the reader went elsewhere. Nothing else moves what is
 * read: the place is only ever set to the end.
 */
export function useStick(scroller: RefObject<HTMLElement | null>, atLatest: boolean) {
  const [away, setAway] = useState(false)
  const stuck = useRef(true)
  const toEnd = useCallback(() => {
    stuck.current = true
    setAway(false)
    requestAnimationFrame(() => {
      const element = scroller.current
      if (element) element.scrollTop = element.scrollHeight
    })
  }, [scroller])
  useEffect(() => {
    const element = scroller.current
    const content = element?.firstElementChild
    if (!element || !content) return
    let height = 0
    const grown = new ResizeObserver(() => {
      if (stuck.current && atLatest) element.scrollTop = element.scrollHeight
      height = element.scrollHeight
    })
    const scrolled = () => {
      // What changes its size under the reader scrolls too, and is no wish to leave.
      if (element.scrollHeight !== height) return
      const gap = element.scrollHeight - element.scrollTop - element.clientHeight
      stuck.current = gap < near
      setAway(gap > near * 3)
    }
    grown.observe(content)
    grown.observe(element)
    element.addEventListener('scroll', scrolled, { passive: true })
    return () => {
      grown.disconnect()
      element.removeEventListener('scroll', scrolled)
    }
  }, [scroller, atLatest])
  return { away, toEnd }
}
