import { type ErrorCode, errors, type RuntimeError } from '../../core/errors.ts'
import type { ResponseStatus } from './events.ts'

/** The codes that CopilotKit's clients know; any other makes their error handler throw. */
const codes: Partial<Record<ErrorCode, string>> = {
  agent_not_found: 'AGENT_NOT_FOUND',
  unauthenticated: 'AUTHENTICATION_ERROR',
  authentication: 'AUTHENTICATION_ERROR',
  not_found: 'API_NOT_FOUND',
  thread_not_found: 'NOT_FOUND',
  thread_damaged: 'CONFIGURATION_ERROR',
  store_unavailable: 'NETWORK_ERROR',
  outcome_unknown: 'NETWORK_ERROR',
  overloaded: 'NETWORK_ERROR',
  stopping: 'NETWORK_ERROR',
}

const byCategory: Record<string, string> = {
  request: 'MISUSE',
  state: 'MISUSE',
  access: 'AUTHENTICATION_ERROR',
  provider: 'NETWORK_ERROR',
}

/** The classes of CopilotKit's errors, which its clients and logs tell apart by name. */
const names: Record<string, string> = {
  NETWORK_ERROR: 'CopilotKitLowLevelError',
  API_NOT_FOUND: 'CopilotKitApiDiscoveryError',
  AGENT_NOT_FOUND: 'CopilotKitAgentDiscoveryError',
  MISUSE: 'CopilotKitMisuseError',
}

/** What a client is told of an error beside its sentence. `code` is any of ours, or one of old. */
function extensionsOf(code: string) {
  const known = Object.hasOwn(errors, code) ? (code as ErrorCode) : 'internal'
  const { category, status, retryable } = errors[known]
  const theirs = codes[known] ?? byCategory[category] ?? 'UNKNOWN'
  return {
    name: names[theirs] ?? 'CopilotKitError',
    code: theirs,
    statusCode: status,
    severity: retryable ? 'warning' : 'critical',
    visibility: retryable ? 'toast' : 'banner',
    handrail: { code: known, retryable },
  }
}

/** The `extensions` of a GraphQL error. */
export function errorExtensions({ code, message, field, data }: RuntimeError) {
  const extensions = extensionsOf(code)
  const about = { ...extensions.handrail, ...(field !== undefined && { field }), ...data }
  const original = { message, extensions: { code: extensions.code } }
  return { ...extensions, handrail: about, originalError: original }
}

/** A run that failed, as the status of its response. */
export function failedStatus({ code, message }: { code: string; message: string }): ResponseStatus {
  if (code === 'guardrail') {
    const details = { guardrailsReason: message }
    return { code: 'Failed', reason: 'GUARDRAILS_VALIDATION_FAILED', details }
  }
  const details = { description: message, originalError: { message, ...extensionsOf(code) } }
  return { code: 'Failed', reason: 'UNKNOWN_ERROR', details }
}

/** A response that ends because somebody stopped its run, or took its thread away. */
export const stoppedStatus = (description: string): ResponseStatus => ({
  code: 'Failed',
  reason: 'MESSAGE_STREAM_INTERRUPTED',
  details: { description },
})
