export const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })

/** Longer with each try, up to ten seconds, and not in step with other pages; an abort ends it. */
export const pause = (tries: number, signal: AbortSignal): Promise<void> =>
  rest(Math.min(10_000, 250 * 2 ** Math.min(tries, 6)) * (0.75 + Math.random() / 2), signal)

/** So many milliseconds, or until the abort. */
export async function rest(ms: number, signal: AbortSignal): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const over = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms)
  })
  await Promise.race([over, aborted(signal)])
  clearTimeout(timer)
}

/** Says when the tab has been hidden for a while, and when it is shown again. */
export function whileHidden(after: number, tell: (hidden: boolean) => void): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined
  let hidden = false
  const look = () => {
    clearTimeout(timer)
    const now = document.visibilityState === 'hidden'
    if (now) {
      timer = setTimeout(() => {
        hidden = true
        tell(true)
      }, after)
    } else if (hidden) {
      hidden = false
      tell(false)
    }
  }
  document.addEventListener('visibilitychange', look)
  look()
  return () => {
    clearTimeout(timer)
    document.removeEventListener('visibilitychange', look)
  }
}
