import { setMaxListeners } from 'node:events'

/** For a signal that many wait for: Node warns of a leak when there are more than ten. */
export function sharedAbort(): AbortController {
  const abort = new AbortController()
  setMaxListeners(0, abort.signal)
  return abort
}

/**
 * A signal that fires with another one, or by itself, until `leave`. Where one is made for every call:
 * `AbortSignal.any` costs ten times as much.
 */
export function offshoot(of: AbortSignal) {
  const own = new AbortController()
  const follow = () => own.abort(of.reason)
  if (of.aborted) follow()
  else of.addEventListener('abort', follow, { once: true })
  const leave = () => of.removeEventListener('abort', follow)
  return { signal: own.signal, abort: () => own.abort(), leave }
}
