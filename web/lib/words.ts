import { ApiError } from './api.ts'
import type { RunError } from './shapes.ts'

const sentences: Record<string, string> = {
  page_unreachable: 'This page has lost its server. It tries again by itself.',
  unreachable: 'The Handrail server cannot be reached. The page tries again by itself.',
  not_stopped: 'Stop did not reach the server. Press it again.',
  unauthenticated: 'The server wants an API key.',
  thread_busy: 'An answer is still being written in this chat.',
  thread_waiting: 'This chat waits for a decision first.',
  run_not_found: 'There is no such run in this chat.',
  not_yours_to_decide: 'This is for others to decide.',
  ask_differs: 'What is asked has changed. Look at it again before you decide.',
  thread_not_found: 'This chat does not exist any more.',
  body_too_large: 'This is too large to send. Send a smaller image or less text.',
  network: 'The model could not be reached. Try again.',
  rate_limit: 'The model is asked too much at the moment. Try again in a minute.',
  authentication: 'The model refuses the server’s key. Whoever runs the server has to set it.',
  context_too_long: 'This chat has become too long for the model. Start a new one.',
  agent_not_found: 'The server has no such agent any more.',
  outcome_unknown:
    'The server did not confirm this in time. It may still take effect: look before you send it again.',
  store_unavailable: 'The server cannot write at the moment. Nothing was lost; try again shortly.',
  stopping: 'The server is restarting. Try again in a moment.',
  guardrail_away: 'The message could not be checked against the rules. Try again.',
}

/** Returns the text for an error: the page's words for its code, unless the error of a run has a message of its own. */
export function wordsFor({ code, message, specific }: RunError): string {
  return specific ? message : (sentences[code] ?? message)
}

/** The same of what was asked for once: nobody but the person asks for it again. */
export function errorWords(problem: unknown): string {
  if (!(problem instanceof ApiError))
    return problem instanceof Error ? problem.message : String(problem)
  const away = problem.code === 'unreachable' || problem.code === 'page_unreachable'
  return away ? 'The server could not be reached. Try again.' : wordsFor(problem)
}

/** 850 ms, 4.2 s, 2 min 5 s. */
export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))} ms`
  const tenths = Math.round(ms / 100)
  if (tenths < 600) return `${(tenths / 10).toFixed(1)} s`
  const seconds = Math.round(ms / 1_000)
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`
}

/** just now, 5 min ago, 14:03, 3 May. */
export function ago(iso: string, now: number): string {
  const at = new Date(iso)
  const minutes = Math.floor((now - at.getTime()) / 60_000)
  if (minutes < 1) return 'just now'
  if (minutes < 60) return `${minutes} min ago`
  const sameDay = new Date(now).toDateString() === at.toDateString()
  return sameDay
    ? at.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' })
    : at.toLocaleDateString([], { day: 'numeric', month: 'short' })
}

/** 12 s, 4 min 10 s, 3 h 5 min, 2 days. */
export function until(ms: number): string {
  const seconds = Math.ceil(ms / 1_000)
  if (seconds < 60) return `${seconds} s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 10) return `${minutes} min ${seconds % 60} s`
  if (minutes < 60) return `${minutes} min`
  const hours = Math.floor(minutes / 60)
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} days`
}

/** 14:03, or 3 May 14:03 on another day. */
export function moment(at: number | string, now = Date.now()): string {
  const date = new Date(at)
  const time = date.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' })
  if (new Date(now).toDateString() === date.toDateString()) return time
  return `${date.toLocaleDateString([], { day: 'numeric', month: 'short' })} ${time}`
}

/** At most so many characters, and a sign where something is left out. */
export const brief = (text: string, most: number): string =>
  text.length > most ? `${text.slice(0, most - 1).trimEnd()}…` : text
