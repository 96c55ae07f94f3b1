/** The host's side of the memory that a worker prints into; see worker-source.ts for its layout. */
export interface Output {
  readonly shared: SharedArrayBuffer
  readonly text: string
  readonly cut: boolean
  /** Takes what was printed since the last time, and gives it to `write`. */
  fetch(): void
}

const headBytes = 12

export function createOutput(limit: number, write: (text: string) => void): Output {
  const shared = new SharedArrayBuffer(headBytes + limit)
  const head = new Int32Array(shared, 0, 3)
  let text = ''
  let read = 0
  return {
    shared,
    get text() {
      return text
    },
    get cut() {
      return Atomics.load(head, 1) === 1
    },
    fetch() {
      Atomics.store(head, 2, 0) // before looking, so that what comes after is told again
      const written = Math.min(Atomics.load(head, 0), limit)
      if (written === read) return
      // The worker adds whole characters only, so no piece ends inside one.
      const piece = Buffer.from(shared, headBytes + read, written - read).toString()
      read = written
      text += piece
      write(piece)
    },
  }
}
