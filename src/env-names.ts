/** Set for the page, for tests and for what starts us. */
const others = ['HANDRAIL_WEB', 'HANDRAIL_URL', 'HANDRAIL_KILLS', 'HANDRAIL_SEED']
const tests = /^HANDRAIL_(TEST|SOAK|CHAOS)_/
/** Kubernetes sets these for services that are called like us. */
const services = /_SERVICE_(HOST|PORT)|_PORT_\d+_/
const isService = (name: string, value = '') => services.test(name) || /^(tcp|udp):/.test(value)

/**
 * A sentence for each variable that looks like one of ours and is not. Only told: other programs may
 * have such names too.
 */
export function strangeNames(env: NodeJS.ProcessEnv, known: readonly string[]): string[] {
  return Object.keys(env)
    .filter((name) => name.startsWith('HANDRAIL_') && !tests.test(name))
    .filter((name) => !isService(name, env[name]))
    .filter((name) => !known.includes(name) && !others.includes(name))
    .map(
      (name) =>
        `${name} is set, and there is no such setting. The nearest is ${nearest(name, known)}.`,
    )
}

function nearest(name: string, known: readonly string[]): string {
  const bare = name.replace('HANDRAIL_', '')
  if (known.includes(bare)) return bare
  const far = known.map((one) => ({ one, distance: distanceOf(name, one) }))
  return far.reduce((best, next) => (next.distance < best.distance ? next : best)).one
}

/** Letters to change, add or leave out. */
function distanceOf(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const change = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(change, row[j]! + 1, next[j - 1]! + 1))
    }
    row = next
  }
  return row.at(-1)!
}
