import { setMaxListeners } from 'node:events'

/** For a signal that many wait for: Node warns of a leak when there are more than ten. */
export function sharedAbort(): AbortController {
  const abort = new AbortController()
  setMaxListeners(0, abort.signal)
  return abort
}
