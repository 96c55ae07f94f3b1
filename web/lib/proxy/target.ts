/**
 * Which address of the runtime a path of the page stands for. Only what the page needs is let through,
 * and only to the configured origin: the path that comes in is never parsed as an address.
 */
export type Target = { path: string } | { refused: 'unknown' | 'malformed' }

/** Where the runtime serves CopilotKit's clients; the other routes are at its root. */
const clients = '/copilotkit'

/** `*` is one segment, `**` any number of them. The first that fits holds. */
const routes: readonly (readonly [pattern: string, base: string])[] = [
  ['threads/*/governor', ''],
  ['threads/*/grants', ''],
  ['threads/*/grants/*', ''],
  ['threads/*/audit', ''],
  ['threads/*/journal', ''],
  ['threads', clients],
  ['threads/**', clients],
  ['info', clients],
  ['agent/**', clients],
  ['status', clients],
  ['approval/*', clients],
  ['chat', clients],
  ['chats', ''],
  ['chats/**', ''],
  ['approvals', ''],
  ['approvals/**', ''],
  ['agent-orchestrator', ''],
]

/** `path` is as the request has it, still encoded: `/threads/a%2Fb/messages`. */
export function targetOf(path: string): Target {
  const segments = path.replace(/^\//, '').split('/')
  if (!segments.every(isPlain)) return { refused: 'malformed' }
  const route = routes.find(([pattern]) => fits(pattern.split('/'), segments))
  return route ? { path: `${route[1]}/${segments.join('/')}` } : { refused: 'unknown' }
}

/** An id may hold an encoded slash; what would climb once it is decoded, even twice, may not pass. */
function isPlain(segment: string): boolean {
  let text = segment
  for (let pass = 0; pass < 3; pass++) {
    if (text === '' || text.split(/[/\\]/).some((part) => part === '.' || part === '..'))
      return false
    try {
      const decoded = decodeURIComponent(text)
      if (decoded === text) break
      text = decoded
    } catch {
      return pass > 0 // a decoded id may well have a percent sign in it
    }
  }
  return !/\p{Cc}/u.test(text)
}

function fits(pattern: readonly string[], segments: readonly string[]): boolean {
  const rest = pattern.at(-1) === '**'
  const fixed = rest ? pattern.slice(0, -1) : pattern
  const long = rest ? segments.length > fixed.length : segments.length === fixed.length
  return long && fixed.every((one, i) => one === '*' || one === segments[i])
}
