/** A value that components follow with `useSyncExternalStore`. */
export class Store<T extends object> {
  #value: T
  readonly #listeners = new Set<() => void>()

  constructor(value: T) {
    this.#value = value
  }

  get = (): T => this.#value

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  set(changes: Partial<T>): void {
    this.#value = { ...this.#value, ...changes }
    for (const listener of this.#listeners) listener()
  }
}
