'use client'

import { type RefObject, useCallback, useEffect, useRef, useState } from 'react'

const near = 80 // pixels from the end that still count as being there

/**
 * Keeps the end in sight while it grows, unless the reader went elsewhere. Nothing else moves what is
 * read: the place is only ever set to the end, or, once, to the beginning of questions that do not fit.
 */
export function useStick(scroller: RefObject<HTMLElement | null>, atLatest: boolean) {
  const [away, setAway] = useState(false)
  const stuck = useRef(true)
  const begun = useRef(new WeakSet<Element>())
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
    const gap = () => element.scrollHeight - element.scrollTop - element.clientHeight
    const look = () => {
      stuck.current = gap() < near
      setAway(gap() > near * 3)
    }
    const grown = new ResizeObserver(() => {
      const group = tallGroup(element)
      if (!(stuck.current && atLatest)) {
        if (gap() < near) look() // what was below is gone
      } else if (group && !begun.current.has(group)) {
        begun.current.add(group)
        group.scrollIntoView({ block: 'start' })
        look()
      } else element.scrollTop = element.scrollHeight
      height = element.scrollHeight
    })
    // What changes its size under the reader scrolls too, and is no wish to leave.
    const scrolled = () => {
      if (element.scrollHeight === height) look()
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

/** What is asked comes first: of questions that do not fit, the beginning is to be seen, not the buttons. */
function tallGroup(scroller: HTMLElement): HTMLElement | undefined {
  const groups = scroller.querySelectorAll<HTMLElement>('.ask-group')
  const last = groups[groups.length - 1]
  return last && last.offsetHeight > scroller.clientHeight ? last : undefined
}
