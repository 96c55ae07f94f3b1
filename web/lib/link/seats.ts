/**
 * So many tabs keep a connection open to a chat on which nothing runs. Of the six that a browser has for a
 * server, for all tabs together, the rest is for answers as they are written, for the inbox, and for what is sent.
 */
const seats = 2

/**
 * Calls `work` with whether this tab may keep a connection open meanwhile. Where tabs cannot know of each
 * other each may.
 */
export async function seated<T>(work: (seat: boolean) => Promise<T>): Promise<T> {
  if (!navigator.locks) return await work(true)
  const free = { ifAvailable: true }
  const sit = async (n: number): Promise<T> =>
    await navigator.locks.request(`handrail.seat.${n}`, free, async (lock) => {
      if (lock) return await work(true)
      return n + 1 < seats ? await sit(n + 1) : await work(false)
    })
  return await sit(0)
}
