/** Says something; resolves when it was taken. */
export type Say<T> = (...values: T[]) => Promise<void>

/** What is said while something is being done, in order, by as many as do it; then what came of it. */
export async function* saying<T, R>(
  work: (say: Say<T>) => Promise<R>,
): AsyncGenerator<T, R, undefined> {
  const waiting: { values: T[]; taken: () => void }[] = []
  let over = false
  let wake = () => {}
  const done = work((...values) => {
    return new Promise<void>((taken) => {
      waiting.push({ values, taken })
      wake()
    })
  }).finally(() => {
    over = true
    wake()
  })
  done.catch(() => {}) // it is awaited below, once all that was said is taken
  for (;;) {
    const next = waiting.shift()
    if (next) {
      yield* next.values
      next.taken()
    } else if (over) return await done
    else
      await new Promise<void>((resolve) => {
        wake = resolve
      })
  }
}
