/** One after the other, in the order in which they came. */
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
