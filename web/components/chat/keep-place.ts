const patience = 5_000
const frames = 4 // in which what is new finds its size

/**
 * Another version of a turn comes where this one is: it is put where this one was seen, and the focus goes to
 * the way to the other versions. Gives up where the reader went elsewhere meanwhile.
 */
export function keepPlace(turn: Element, runId: string): void {
  const scroller = turn.closest('.scroller')
  const top = turn.getBoundingClientRect().top
  const until = performance.now() + patience
  let left = frames
  const look = () => {
    const found = scroller?.querySelector(`.turn[data-run="${CSS.escape(runId)}"]`)
    if (!scroller?.isConnected || performance.now() > until) return
    if (found) {
      scroller.scrollTop += found.getBoundingClientRect().top - top
      if (left === frames) focusIn(found)
      left--
    }
    if (left > 0) requestAnimationFrame(look)
  }
  requestAnimationFrame(look)
}

function focusIn(turn: Element): void {
  const idle = document.activeElement === null || document.activeElement === document.body
  const button = turn.querySelector<HTMLElement>('.branches button:not(:disabled)')
  if (idle) button?.focus({ preventScroll: true })
}
