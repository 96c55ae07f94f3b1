/**
 * Lets those who come together in a few at a time, the first to come first: one in every turn of the
 * event loop, more when many wait. Whoever is inside gets on before the next comes in; without it all
 * would be half done until the last is. The line does not grow without end: the longer it is, the more
 * come in, and each of them holds a connection already.
 */
export function turnstile(): () => Promise<void> {
  const waiting: (() => void)[] = []
  let turning = false
  const turn = () => {
    const some = Math.ceil(waiting.length / 16)
    for (const enter of waiting.splice(0, some)) enter()
    turning = some > 0
    if (turning) setImmediate(turn)
  }
  return async () => {
    if (turning) return await new Promise((resolve) => waiting.push(resolve))
    turning = true
    setImmediate(turn)
  }
}
