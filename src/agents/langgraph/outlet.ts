/** What many say, taken by one, in order. */
export class Outlet<T> {
  readonly #items: { item: T; taken: () => void }[] = []
  #end: { error?: unknown } | undefined
  #wake: () => void = () => {}

  /** Resolves when whoever takes it has dealt with it, or nobody takes anything any more. */
  put(item: T): Promise<void> {
    if (this.#end) return Promise.resolve()
    const taken = new Promise<void>((resolve) => {
      this.#items.push({ item, taken: resolve })
    })
    this.#wake()
    return taken
  }

  end(error?: { error: unknown }): void {
    this.#end ??= error ?? {}
    this.#wake()
  }

  /** Nobody listens: all that waits goes on. */
  leave(): void {
    for (const { taken } of this.#items.splice(0)) taken()
  }

  async *take(): AsyncGenerator<T> {
    for (;;) {
      for (let next = this.#items.shift(); next; next = this.#items.shift()) {
        yield next.item
        next.taken()
      }
      if (this.#end && 'error' in this.#end) throw this.#end.error
      if (this.#end) return
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }
}
