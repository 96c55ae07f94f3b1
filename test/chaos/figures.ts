/** `p50 1.2 s, p95 3.4 s, max 5.0 s` */
export function spread(times: readonly number[]): string {
  if (times.length === 0) return 'none'
  const sorted = [...times].sort((a, b) => a - b)
  const at = (share: number) =>
    sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]!
  const text = (ms: number) =>
    ms < 1_000 ? `${Math.round(ms)} ms` : `${(ms / 1_000).toFixed(1)} s`
  return `p50 ${text(at(0.5))}, p95 ${text(at(0.95))}, max ${text(sorted.at(-1)!)}`
}

export const tallyOf = (names: Iterable<string>): string => {
  const counts = new Map<string, number>()
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1)
  return [...counts]
    .sort()
    .map(([name, times]) => `${times} ${name}`)
    .join(', ')
}
