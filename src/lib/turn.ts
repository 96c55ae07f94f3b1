/** Runs what it is given one after another, in the order it is given. */
export type Turn = <T>(work: () => Promise<T>) => Promise<T>

export function oneByOne(): Turn {
  const turns = new Turns()
  return (work) => turns.take((before) => before, work)
}

/** The same for those who do not wait for ever. */
export class Turns {
  #last: Promise<void> | undefined

  /** `wait` may give up on those before; whoever comes next still waits for them. */
  async take<T>(
    wait: (before: Promise<void>) => Promise<void>,
    work: () => Promise<T>,
  ): Promise<T> {
    const before = this.#last
    let done = () => {}
    const own = new Promise<void>((resolve) => {
      done = resolve
    })
    this.#last = own
    try {
      if (before) await wait(before)
      return await work()
    } finally {
      const leave = () => {
        if (this.#last === own) this.#last = undefined
        done()
      }
      if (before) void before.then(leave)
      else leave()
    }
  }
}
