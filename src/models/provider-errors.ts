import { type ErrorCode, RuntimeError, withoutSecretTexts } from '../core/errors.ts'
import { masked, withoutTexts } from '../lib/masked.ts'

/** What SDKs throw and providers send, as far as anything is to be learned from it. */
interface Thrown {
  name?: unknown
  code?: unknown
  type?: unknown
  message?: unknown
  status?: unknown
  statusCode?: unknown
  headers?: unknown
  responseHeaders?: unknown
  responseBody?: unknown
  lastError?: unknown
  cause?: unknown
  error?: unknown
}

const byStatus: Record<number, ErrorCode> = {
  400: 'model_request',
  401: 'authentication',
  402: 'authentication',
  403: 'authentication',
  404: 'model_request',
  408: 'model_timeout',
  409: 'model_overloaded',
  413: 'context_too_long',
  422: 'model_request',
  425: 'model_overloaded',
  429: 'rate_limit',
}

/** Words that providers put into `type`, `code` or `status` of an error. */
const byWord: Record<string, ErrorCode> = {
  overloaded_error: 'model_overloaded',
  api_error: 'model_overloaded',
  server_error: 'model_overloaded',
  internal_server_error: 'model_overloaded',
  timeout_error: 'model_timeout',
  rate_limit_error: 'rate_limit',
  rate_limit_exceeded: 'rate_limit',
  insufficient_quota: 'authentication',
  billing_error: 'authentication',
  authentication_error: 'authentication',
  permission_error: 'authentication',
  invalid_api_key: 'authentication',
  not_found_error: 'model_request',
  model_not_found: 'model_request',
  invalid_request_error: 'model_request',
  invalid_prompt: 'model_request',
  request_too_large: 'context_too_long',
  context_length_exceeded: 'context_too_long',
  content_filter: 'model_refused',
}

const byName: Record<string, ErrorCode> = {
  AI_JSONParseError: 'model_answer',
  AI_TypeValidationError: 'model_answer',
  AI_InvalidResponseDataError: 'model_answer',
  AI_NoContentGeneratedError: 'model_answer',
  SyntaxError: 'model_answer',
  AI_EmptyResponseBodyError: 'stream_cut',
  AI_LoadAPIKeyError: 'authentication',
  AI_InvalidPromptError: 'model_request',
  AI_InvalidArgumentError: 'model_request',
  AI_UnsupportedFunctionalityError: 'model_request',
  AbortError: 'network',
  TimeoutError: 'model_timeout',
  APIConnectionTimeoutError: 'model_timeout',
  APIConnectionError: 'network',
}

const tooLong =
  /context (length|window|limit)|maximum context|prompt is too long|too many tokens|input token count|exceeds the maximum number of tokens|reduce the length/i
const offline =
  /^(E(CONN|PIPE|HOST|NET|TIMEDOUT|AI_AGAIN|NOTFOUND|PROTO)|ENOTFOUND|EAI_AGAIN|UND_ERR_|ERR_(STREAM|SSL|TLS|HTTP2)|CERT_)/
const lost =
  /fetch failed|terminated|socket hang up|other side closed|network|cannot connect|premature close/i

/**
 * Any failure of a provider as one of ours. `begun`: the answer had begun, so what looks like a
 * connection that failed is one that was cut. `secrets`: keys of the request, which the message and the cause must not repeat.
 */
export function providerError(
  thrown: unknown,
  begun = false,
  secrets: readonly string[] = [],
): RuntimeError {
  if (thrown instanceof RuntimeError) return withoutSecretTexts(thrown, secrets)
  const chain = chainOf(thrown)
  const code = codeOf(chain, begun)
  const { retryAfter, said } = detailsOf(chain)
  const cause = causeOf(thrown, chain, secrets)
  const details = { cause, ...(retryAfter !== undefined && { retryAfter }) }
  const open = said === undefined ? undefined : withoutTexts(said, secrets)
  return new RuntimeError(code, sentenceFor(code, chain, open), details)
}

/** Returns the cause for the log: the thrown value, or, if one of its messages has a secret, an error with the redacted message. */
function causeOf(thrown: unknown, chain: readonly Thrown[], secrets: readonly string[]): unknown {
  const texts = chain.map(({ message }) => message).filter(isText)
  const hasSecret = texts.some((text) => withoutTexts(text, secrets) !== text)
  return hasSecret ? new Error(withoutTexts(texts.join(': '), secrets)) : thrown
}

function codeOf(chain: readonly Thrown[], begun: boolean): ErrorCode {
  const words = chain.flatMap(({ code, type }) => [code, type]).filter(isText)
  const texts = chain.map(({ message }) => message).filter(isText)
  const bodies = chain.map(({ responseBody }) => responseBody).filter(isText)
  if ([...texts, ...bodies].some((text) => tooLong.test(text))) return 'context_too_long'
  for (const word of words) if (Object.hasOwn(byWord, word)) return byWord[word]!
  const status = statusOf(chain)
  if (status === 429 && bodies.some((body) => body.includes('insufficient_quota')))
    return 'authentication'
  if (status === 400 && bodies.some((body) => /API[_ ]key (not valid|expired)/i.test(body)))
    return 'authentication'
  if (status !== undefined && status >= 400)
    return byStatus[status] ?? (status < 500 ? 'model_request' : 'model_overloaded')
  const names = chain.map(({ name }) => name).filter(isText)
  const unread = names.find((name) => byName[name] === 'model_answer')
  if (unread !== undefined) return 'model_answer'
  const away = words.some((word) => offline.test(word)) || texts.some((text) => lost.test(text))
  if (away || status !== undefined) return begun || status !== undefined ? 'stream_cut' : 'network'
  for (const name of names) {
    const code = Object.hasOwn(byName, name) ? byName[name]! : undefined
    if (code) return code === 'network' && begun ? 'stream_cut' : code
  }
  return 'internal'
}

/** The error, the last of several tries, what caused it, and what the provider sent. */
function chainOf(thrown: unknown): Thrown[] {
  const chain: Thrown[] = []
  const look = (one: unknown): void => {
    if (typeof one === 'string') chain.push({ message: one })
    if (typeof one !== 'object' || one === null || chain.length >= 8) return
    if (chain.includes(one)) return
    chain.push(one)
    const { lastError, cause, error } = one as Thrown
    for (const inner of [lastError, error, cause]) look(inner)
  }
  look(thrown)
  return chain
}

function statusOf(chain: readonly Thrown[]): number | undefined {
  for (const { status, statusCode } of chain) {
    if (typeof statusCode === 'number') return statusCode
    if (typeof status === 'number') return status
  }
  // In the middle of an answer there is no status any more: some say it as the code.
  const codes = chain.map(({ code }) => Number(code))
  return codes.find((code) => code >= 400 && code < 600)
}

function detailsOf(chain: readonly Thrown[]): { retryAfter?: number; said?: string } {
  const said = chain.map(({ message }) => message).find(isText)
  for (const { responseHeaders, headers, responseBody } of chain) {
    const after = retryAfterOf(responseHeaders ?? headers)
    if (after !== undefined) return { retryAfter: after, ...(said && { said }) }
    const delay = isText(responseBody) && /"retryDelay":\s*"(\d+(?:\.\d+)?)s"/.exec(responseBody)
    if (delay) return { retryAfter: Number(delay[1]), ...(said && { said }) }
  }
  return said === undefined ? {} : { said }
}

/** Seconds, from milliseconds, seconds or a date. */
export function retryAfterOf(headers: unknown, now = Date.now()): number | undefined {
  const get = (name: string): string | undefined => {
    if (headers instanceof Headers) return headers.get(name) ?? undefined
    const value = (headers as Record<string, unknown> | undefined | null)?.[name]
    return isText(value) ? value : undefined
  }
  const ms = Number(get('retry-after-ms'))
  if (ms > 0) return ms / 1_000
  const text = get('retry-after')
  if (text === undefined) return undefined
  const seconds = Number(text)
  if (Number.isFinite(seconds)) return Math.max(0, seconds)
  const date = Date.parse(text)
  return Number.isNaN(date) ? undefined : Math.max(0, (date - now) / 1_000)
}

/** What the provider says of a request helps who made it; of keys nothing is repeated. */
function sentenceFor(code: ErrorCode, chain: readonly Thrown[], said: string | undefined) {
  const status = statusOf(chain)
  if (code === 'model_overloaded' && status !== undefined && status < 529 && status !== 503)
    return `The model provider failed (${status}).`
  if (code !== 'model_request' || said === undefined) return undefined
  const safe = masked(said.replace(/\b(sk|pk|key|AIza)[-_\w]{8,}/g, '…'))
  return `The model provider refused the request: ${safe.slice(0, 300)}`
}

const isText = (value: unknown): value is string => typeof value === 'string' && value !== ''
