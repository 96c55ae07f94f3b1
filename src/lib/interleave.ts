/** Takes items from the lists in turn, each item once and at most `limit` in all: no list starves another. */
export function interleave<T>(limit: number, ...lists: readonly Iterable<T>[]): T[] {
  const found = new Set<T>()
  let rest = lists.map((list) => list[Symbol.iterator]())
  while (rest.length > 0 && found.size < limit) {
    rest = rest.filter((items) => {
      const { done, value } = items.next()
      if (!done && found.size < limit) found.add(value)
      return !done
    })
  }
  return [...found]
}
