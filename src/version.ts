import { readFileSync } from 'node:fs'

/** Of this package, as its file says. */
export function version(): string {
  const text = readFileSync(new URL('../package.json', import.meta.url), 'utf8')
  return (JSON.parse(text) as { version: string }).version
}
