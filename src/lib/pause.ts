import { setImmediate } from 'node:timers/promises'

/** Items of a list from which on work on it takes milliseconds. */
const manyItems = 64
/** Milliseconds that a loop keeps the event loop. */
const maxBusy = 5

/** Whether work on a list of this length takes milliseconds. */
export const isMany = (items: number): boolean => items > manyItems

/** Lets other requests run before work on a long list; does not wait for a short one. */
export async function pauseBefore(items: number): Promise<void> {
  if (isMany(items)) await setImmediate()
}

/** Returns a function for a long loop: it lets other requests run once the loop has kept the event loop for 5 ms. */
export function pauses(): () => Promise<void> | undefined {
  let since = performance.now()
  return () => {
    if (performance.now() - since < maxBusy) return undefined
    return setImmediate().then(() => {
      since = performance.now()
    })
  }
}
