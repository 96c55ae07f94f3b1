/**
 * Named crash points. A test arms one as `point:occurrence`; the process dies there by SIGKILL,
 * which nothing can catch, clean up after, or flush in time for.
 */
export function crashAt(armed: string | undefined): (point: string) => void {
  if (armed === undefined) return () => {}
  const at = armed.lastIndexOf(':')
  const point = armed.slice(0, at)
  let left = Number(armed.slice(at + 1))
  if (point === '' || !Number.isInteger(left) || left < 1) {
    throw new Error(`HANDRAIL_CRASH=${armed}: write point:occurrence.`)
  }
  return (reached) => {
    if (reached === point && --left === 0) process.kill(process.pid, 'SIGKILL')
  }
}
