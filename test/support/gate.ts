/** A place where a scripted model or a tool stands until the test lets it go on. */
export interface Gate {
  /** Resolves once somebody stands here. */
  reached: Promise<void>
  open(): void
  /** Stands here; leaves with the signal's reason when it fires. */
  pass(signal?: AbortSignal): Promise<void>
}

export function gate(): Gate {
  let arrive = () => {}
  let open = () => {}
  const reached = new Promise<void>((resolve) => {
    arrive = resolve
  })
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return {
    reached,
    open,
    async pass(signal) {
      arrive()
      await new Promise<void>((resolve, reject) => {
        const stop = () => reject(signal?.reason)
        if (signal?.aborted) stop()
        signal?.addEventListener('abort', stop, { once: true })
        void opened.then(() => {
          signal?.removeEventListener('abort', stop)
          resolve()
        })
      })
    },
  }
}
