/** Lets `most` in at once; the others wait in the order they came, or leave with their signal. */
export function createTurns(most: number) {
  const waiting: (() => void)[] = []
  let inside = 0

  return {
    async enter(signal: AbortSignal): Promise<void> {
      signal.throwIfAborted()
      if (inside < most) {
        inside++
        return
      }
      await new Promise<void>((resolve, reject) => {
        const enter = () => {
          signal.removeEventListener('abort', leave)
          resolve()
        }
        const leave = () => {
          waiting.splice(waiting.indexOf(enter), 1)
          reject(signal.reason)
        }
        waiting.push(enter)
        signal.addEventListener('abort', leave, { once: true })
      })
    },
    leave() {
      const next = waiting.shift()
      if (next) next()
      else inside--
    },
  }
}
