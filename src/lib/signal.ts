import { setMaxListeners } from 'node:events'

/** For a signal that many wait for: Node warns of a leak when there are more than ten. */
export function sharedAbort(): AbortController {
  const abort = new AbortController()
  setMaxListeners(0, abort.signal)
  return abort
}

/**
 * A signal that fires with any of others, or by itself, until `leave`. Where one is made for every call, or given to
 * other people's code: `AbortSignal.any` costs ten times as much, and Node keeps what it gives, and all that hangs
 * on it, for as long as somebody listens to it.
 */
export function offshoot(...of: AbortSignal[]) {
  const own = new AbortController()
  const follows = of.map((one) => ({ one, follow: () => own.abort(one.reason) }))
  for (const { one, follow } of follows) {
    if (one.aborted) follow()
    else one.addEventListener('abort', follow, { once: true })
  }
  const leave = () => {
    for (const { one, follow } of follows) one.removeEventListener('abort', follow)
  }
  return { signal: own.signal, abort: () => own.abort(), leave }
}
