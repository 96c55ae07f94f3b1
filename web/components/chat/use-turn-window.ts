'use client'

import { type RefObject, useCallback, useLayoutEffect, useRef, useState } from 'react'

const step = 20

/** Which turns are in the page: the latest at first, and as many more as the reader scrolls to. */
export function useTurnWindow(count: number, scroller: RefObject<HTMLElement | null>) {
  const [from, setFrom] = useState<number>() // counted from the end unless somebody went elsewhere
  const [until, setUntil] = useState<number>()
  const start = Math.max(0, Math.min(from ?? count - step, count - 1))
  const end = Math.min(count, until ?? count)
  const heightBefore = useRef<number>(undefined)
  const toTop = useRef(false)

  const current = useRef(start)
  current.current = start
  const more = useCallback(() => {
    if (current.current !== start) return // seen before the reader went elsewhere, and told late
    heightBefore.current = scroller.current?.scrollHeight
    setFrom(Math.max(0, start - step))
  }, [scroller, start])
  // What comes in above must not push down what is read.
  useLayoutEffect(() => {
    const element = scroller.current
    if (element && toTop.current) element.scrollTop = 0
    toTop.current = false
    if (!element || heightBefore.current === undefined) return
    const grown = element.scrollHeight - heightBefore.current
    heightBefore.current = undefined
    if (element.scrollTop < grown) element.scrollTop += grown
  }, [start, scroller])

  const first = useCallback(() => {
    toTop.current = true
    setFrom(0)
    setUntil(step * 2)
  }, [])
  /** Shows the turn at this place, and some around it. */
  const show = useCallback((index: number) => {
    setFrom(Math.max(0, index - step / 2))
    setUntil(index + step / 2)
  }, [])
  const latest = useCallback(() => {
    setFrom(undefined)
    setUntil(undefined)
  }, [])
  const later = useCallback(() => {
    setUntil((now) => (now === undefined || now + step >= count ? undefined : now + step))
  }, [count])

  return {
    start,
    end,
    first,
    show,
    latest,
    top: useSeen(scroller, more),
    bottom: useSeen(scroller, later),
  }
}

/** A ref for an element; what is called when it comes into sight. */
function useSeen(scroller: RefObject<HTMLElement | null>, seen: () => void) {
  return useCallback(
    (element: HTMLElement | null) => {
      if (!element) return
      const options = { root: scroller.current, rootMargin: '600px 0px' }
      const observer = new IntersectionObserver((entries) => {
        if (entries.some(({ isIntersecting }) => isIntersecting)) seen()
      }, options)
      observer.observe(element)
      return () => observer.disconnect()
    },
    [scroller, seen],
  )
}
