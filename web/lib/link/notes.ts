import { ApiError } from '../api.ts'
import type { Problem } from './state.ts'

/** Why a message is back: nobody has heard it. */
export const lost = () => new ApiError(0, 'lost', 'The message did not reach the server.')

const unreached = ({ status }: ApiError) => status === 0 || status === 502

/** Nothing tries that again by itself: the person has to. */
export const notStopped = (error: ApiError): ApiError =>
  unreached(error) ? new ApiError(0, 'not_stopped', 'Stop did not reach the server.') : error

const away = new Set(['page_unreachable', 'unreachable'])

/** What is left to say once the server is heard again; `quiet`: nothing runs that could be stopped. */
export function heard(problem: Problem | undefined, quiet: boolean): Problem | undefined {
  const code = problem?.error.code ?? ''
  if (quiet && code === 'not_stopped') return undefined
  if (!away.has(code)) return problem
  return problem?.saying && { ...problem, error: lost() }
}
