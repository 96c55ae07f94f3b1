import { withoutTexts } from '../lib/masked.ts'
import { shareClass } from '../lib/shared-class.ts'

/** The one table of what can go wrong, for every wire. docs/errors.md is kept equal to it by a test. */
interface Row {
  category: 'request' | 'state' | 'access' | 'provider' | 'tool' | 'agent' | 'store' | 'internal'
  status: number
  retryable: boolean
  /** What a person is told when nothing more precise is known. */
  sentence: string
}

const row = (
  category: Row['category'],
  status: number,
  retryable: boolean,
  sentence: string,
): Row => ({ category, status, retryable, sentence })

export const errors = {
  invalid_json: row('request', 400, false, 'The body is not valid JSON. Send one JSON object.'),
  invalid_encoding: row('request', 400, false, 'The body is not valid UTF-8. Encode it as UTF-8.'),
  invalid_request: row('request', 400, false, 'The request is not valid. See the field it names.'),
  invalid_id: row(
    'request',
    400,
    false,
    'The id is not usable. Use 1 to 200 printable characters.',
  ),
  invalid_cursor: row('request', 400, false, 'The cursor is not one of ours. Start without one.'),
  unsupported_media_type: row('request', 415, false, 'Send the body as application/json.'),
  body_too_large: row('request', 413, false, 'The body is too large. Send less at once.'),
  body_too_deep: row('request', 400, false, 'The JSON is nested too deeply. Flatten it.'),
  body_too_complex: row('request', 400, false, 'The JSON has too many values. Send less at once.'),
  media_unsupported: row('request', 415, false, 'The model cannot read this kind of content.'),
  not_found: row('request', 404, false, 'There is nothing at this address.'),
  method_not_allowed: row('request', 405, false, 'This address does not take that method.'),
  host_not_allowed: row('access', 421, false, 'This server answers to loopback names only.'),
  origin_not_allowed: row(
    'access',
    403,
    false,
    'Pages of other sites may not change anything here.',
  ),
  unauthenticated: row('access', 401, false, 'Say who you are: send a valid API key.'),
  forbidden: row('access', 403, false, 'This is not for you: ask an operator.'),
  not_yours_to_decide: row('access', 403, false, 'This is for somebody else to decide.'),

  thread_not_found: row('state', 404, false, 'There is no such chat.'),
  thread_exists: row('state', 409, false, 'A chat with this id exists already.'),
  thread_damaged: row('store', 500, false, 'This chat is damaged on disk and was closed.'),
  run_not_found: row('state', 404, false, 'There is no such interaction in this chat.'),
  ask_not_found: row('state', 404, false, 'There is no such approval in this interaction.'),
  grant_not_found: row('state', 404, false, 'There is no such grant in this chat.'),
  agent_not_found: row('state', 404, false, 'There is no such agent.'),
  thread_busy: row('state', 409, true, 'The chat is busy with another interaction.'),
  thread_waiting: row('state', 409, false, 'The chat waits for an answer first.'),
  ask_settled: row('state', 400, false, 'This approval was already decided.'),
  ask_differs: row('state', 409, false, 'What was decided is not what is asked. Look at it again.'),
  result_unknown: row('state', 409, false, 'No such call was made on this thread.'),
  interrupt_unknown: row('state', 404, false, 'There is no such interrupt on this thread.'),
  interrupt_expired: row('state', 409, false, 'This question was not answered in time.'),
  interrupt_uncovered: row('state', 409, false, 'Answer all open interrupts together.'),
  run_ended: row('state', 409, false, 'This interaction has already ended.'),
  run_not_failed: row('state', 409, false, 'Only a failed interaction can be run again.'),
  run_superseded: row('state', 409, false, 'A later interaction took the place of this one.'),
  idempotency_mismatch: row(
    'state',
    422,
    false,
    'This Idempotency-Key was used with another request. Use a new key.',
  ),

  budget_spent: row('state', 402, false, 'The budget is used up. Set it anew, then try again.'),

  journal_conflict: row('state', 409, true, 'Something changed in the meantime. Try again.'),
  store_unavailable: row('store', 503, true, 'Storage is not available. Try again shortly.'),
  outcome_unknown: row(
    'store',
    504,
    false,
    'Storage did not confirm this in time. It may still take effect: check before you send it again.',
  ),
  overloaded: row('internal', 503, true, 'The server is at its limit. Try again shortly.'),
  stopping: row('internal', 503, true, 'The server is stopping. Try again shortly.'),

  network: row('provider', 502, true, 'The model could not be reached.'),
  rate_limit: row('provider', 429, true, 'The model provider asks us to slow down.'),
  model_overloaded: row('provider', 503, true, 'The model provider is overloaded.'),
  stream_cut: row('provider', 502, true, 'The model stopped in the middle of its answer.'),
  model_timeout: row('provider', 504, true, 'The model took too long to say anything.'),
  model_busy: row('provider', 503, true, 'Too many calls wait for this model provider.'),
  model_unavailable: row('provider', 503, true, 'The model provider has failed too often lately.'),
  model_answer: row('provider', 502, true, 'The answer of the model could not be read.'),
  answer_too_large: row('provider', 502, false, 'The model wrote more than a message may hold.'),
  model_refused: row('provider', 422, false, 'The model provider declined to answer this.'),
  context_too_long: row('provider', 413, false, 'The chat is too long for the model.'),
  model_missing: row('agent', 501, false, 'This server has no model of its own, only agents.'),
  authentication: row('provider', 502, false, 'The model provider refused our key.'),
  model_request: row('provider', 502, false, 'The model provider refused the request.'),
  guardrail: row('request', 422, false, 'The message is not allowed by the rules of this chat.'),
  guardrail_away: row('internal', 503, true, 'Whether this is allowed could not be checked.'),
  agent_failed: row('agent', 500, false, 'The agent failed.'),
  agent_not_deterministic: row(
    'agent',
    500,
    false,
    'The agent asked for something else than before the restart.',
  ),
  agent_timeout: row('agent', 504, false, 'The agent took too long.'),
  too_many_steps: row('agent', 500, false, 'The agent took more steps than it may.'),
  remote_unavailable: row('agent', 502, true, 'The remote agent could not be reached.'),
  remote_refused: row('agent', 502, false, 'The remote agent refused the request.'),
  remote_timeout: row('agent', 504, false, 'The remote agent took too long.'),
  remote_cut: row(
    'agent',
    502,
    false,
    'The connection to the remote agent was lost in the middle.',
  ),
  remote_outcome_unknown: row(
    'agent',
    502,
    false,
    'The remote agent did not confirm the request. Find out whether it did the work first.',
  ),
  remote_protocol: row('agent', 502, false, 'The remote agent said what cannot be understood.'),
  remote_failed: row('agent', 502, false, 'The remote agent failed.'),
  tool_failed: row('tool', 500, false, 'The tool failed.'),
  tool_timeout: row('tool', 504, true, 'The tool took too long.'),
  internal: row('internal', 500, false, 'Something went wrong on our side.'),
} as const satisfies Record<string, Row>

export type ErrorCode = keyof typeof errors

/** The kinds that people and dashboards tell apart. */
export type ErrorType =
  | 'network'
  | 'rate_limit'
  | 'authentication'
  | 'validation'
  | 'agent_execution'
  | 'overload'
  | 'unknown'

const typeOfCategory: Record<Row['category'], ErrorType> = {
  request: 'validation',
  state: 'validation',
  access: 'authentication',
  provider: 'unknown',
  tool: 'agent_execution',
  agent: 'agent_execution',
  store: 'overload',
  internal: 'unknown',
}

const typeOfCode: Partial<Record<ErrorCode, ErrorType>> = {
  network: 'network',
  stream_cut: 'network',
  remote_unavailable: 'network',
  remote_timeout: 'network',
  remote_cut: 'network',
  remote_outcome_unknown: 'network',
  model_timeout: 'network',
  model_answer: 'network',
  rate_limit: 'rate_limit',
  authentication: 'authentication',
  model_request: 'validation',
  model_refused: 'validation',
  context_too_long: 'validation',
  answer_too_large: 'validation',
  model_overloaded: 'overload',
  model_busy: 'overload',
  model_unavailable: 'overload',
  overloaded: 'overload',
  stopping: 'overload',
}

/** What kind of trouble a code is, whether trying again helps, and how bad that makes it. */
export function classify(code: ErrorCode) {
  const { category, retryable, sentence } = errors[code]
  const type = typeOfCode[code] ?? typeOfCategory[category]
  return { type, retryable, severity: retryable ? 'warning' : 'error', sentence } as const
}

export interface ErrorDetails {
  cause?: unknown
  /** The part of the request that is wrong, as a path: `body.user_message`. */
  field?: string
  /** Seconds until a new try makes sense. */
  retryAfter?: number
  /** More for the caller, shown as it is. */
  data?: Record<string, unknown>
  /** Whether a new try is safe, where the code alone does not say. */
  retryable?: boolean
}

export class RuntimeError extends Error {
  readonly code: ErrorCode
  readonly field: string | undefined
  readonly retryAfter: number | undefined
  readonly data: Record<string, unknown> | undefined
  readonly retryable: boolean

  constructor(code: ErrorCode, message?: string, details: ErrorDetails = {}) {
    super(message ?? errors[code].sentence, { cause: details.cause })
    this.name = 'RuntimeError'
    this.code = code
    this.field = details.field
    this.retryAfter = details.retryAfter
    this.data = details.data
    this.retryable = details.retryable ?? errors[code].retryable
  }

  get status(): number {
    return errors[this.code].status
  }

  /** Returns an error of the same code and details with another message. */
  withMessage(message: string): RuntimeError {
    return new RuntimeError(this.code, message, this)
  }
}
shareClass(RuntimeError, 'RuntimeError')

/**
 * An error that an agent throws for the user to read: its message says what to do, and every wire shows it as
 * it is. The run fails with `agent_failed` and is not retried, because only the user can change the outcome.
 * Of any other error that an agent throws, users get the sentence of the code, and only the log has the rest.
 */
export class AgentError extends RuntimeError {
  constructor(message: string, details: ErrorDetails = {}) {
    super('agent_failed', message, details)
    this.name = 'AgentError'
  }

  override withMessage(message: string): AgentError {
    return new AgentError(message, this)
  }
}
shareClass(AgentError, 'AgentError')

export function isRuntimeError(error: unknown, code?: ErrorCode): error is RuntimeError {
  return error instanceof RuntimeError && (code === undefined || error.code === code)
}

/** Anything thrown, as something that may be told: unknown errors keep their cause for the log only. */
export function toRuntimeError(error: unknown, code: ErrorCode = 'internal'): RuntimeError {
  if (error instanceof RuntimeError) return error
  return new RuntimeError(code, undefined, { cause: error })
}

/** Returns the error without the `secrets` in its message, if it is a `RuntimeError`. Clients never see the message of another error. */
export function withoutSecretTexts<T>(error: T, secrets: readonly string[]): T | RuntimeError {
  if (!(error instanceof RuntimeError)) return error
  const message = withoutTexts(error.message, secrets)
  return message === error.message ? error : error.withMessage(message)
}

/** Returns the code and message of an error as the journal records them, without the `secrets` of the run. */
export function failureOf(
  error: unknown,
  code: ErrorCode = 'internal',
  secrets: readonly string[] = [],
) {
  const known = toRuntimeError(error, code)
  const message = withoutTexts(known.message, secrets)
  return { code: known.code, message, retryable: known.retryable }
}
