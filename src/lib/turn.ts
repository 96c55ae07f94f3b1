/** Runs what it is given one after another, in the order it is given. */
export type Turn = <T>(work: () => Promise<T>) => Promise<T>

export function oneByOne(): Turn {
  let last: Promise<unknown> = Promise.resolve()
  return (work) => {
    const mine = last.then(work)
    last = mine.catch(() => {}) // whoever waits for it is told
    return mine
  }
}
