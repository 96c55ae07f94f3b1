import { type Disk, isFull, isInPlace, type Log, type Place } from './disk.ts'

/**
 * Remembers what no further write can make good: a sync that failed, after which the system may have
 * dropped what was written, and a lock or log that is not ours any more. It is said once.
 */
export class Health {
  failed: Error | undefined
  /** The last commit found no room. */
  full: Error | undefined
  onFailure: (error: Error) => void = () => {}
  readonly #log: Log
  #lookedAt = 0

  constructor(log: Log) {
    this.#log = log
  }

  watch({ write, sync, commit }: Disk): Disk {
    return {
      write,
      sync: async (file, path) => {
        try {
          await sync(file, path)
        } catch (error) {
          this.#fail(error as Error, path, 'a sync failed')
          throw error
        }
      },
      commit: async (file, bytes, position, path) => {
        try {
          await commit(file, bytes, position, path)
          this.#fill(undefined, path)
        } catch (error) {
          if (isFull(error)) this.#fill(error as Error, path)
          else this.#fail(error as Error, path, 'a sync failed')
          throw error
        }
      },
    }
  }

  /**
   * Whether the store goes on: it does not once a file of ours is gone from its place, or another is there.
   * A look of the last `within` milliseconds will do.
   */
  look(place: Place | undefined, within = 0): boolean {
    if (this.failed || !place) return this.failed === undefined
    if (performance.now() - this.#lookedAt < within) return true
    try {
      if (isInPlace(place)) {
        this.#lookedAt = performance.now()
        return true
      }
      throw new Error(`${place.path} was removed, or is of another process now`)
    } catch (error) {
      this.#fail(error as Error, place.path, 'the directory was taken from this process')
      return false
    }
  }

  #fill(error: Error | undefined, path: string) {
    const was = this.full
    this.full = error
    if (error && !was) this.#log.warn({ err: error, path }, 'the disk is full: writes are refused')
    if (!error && was) this.#log.info({ path }, 'there is room again: writes are taken')
  }

  #fail(error: Error, path: string, what: string) {
    if (this.failed) return
    this.failed = error
    this.#log.error({ err: error, path }, `${what}: nothing more is accepted until a restart`)
    this.onFailure(error)
  }
}
