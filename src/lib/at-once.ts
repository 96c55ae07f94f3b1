/**
 * What a function of others says at once, and nothing where it throws or only promises: a promise that is
 * broken with nobody to hear of it would end the process.
 */
export function atOnce(ask: () => unknown): unknown {
  try {
    const said = ask()
    const then: unknown = (said as { then?: unknown } | null | undefined)?.then
    if (typeof then !== 'function') return said
    Promise.resolve(said).catch(() => {})
  } catch {}
  return undefined
}
