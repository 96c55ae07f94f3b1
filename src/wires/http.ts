import { z } from 'zod'
import { isRuntimeError, RuntimeError } from '../core/errors.ts'
import type { Caller } from '../core/runtime.ts'
import { isLong, jsonSteps, unhurried } from '../lib/json-steps.ts'
import { type BodyLimits, invalid, readJson } from './body.ts'

/** One route: the same table serves the requests and writes the OpenAPI document. */
export interface Route<P = unknown, Q = unknown, B = unknown> {
  method: 'get' | 'post' | 'put' | 'patch' | 'delete'
  /** `/chats/{chat_id}`, as OpenAPI writes it. */
  path: string
  summary: string
  params?: z.ZodType<P>
  query?: z.ZodType<Q>
  body?: z.ZodType<B>
  /** The body may be left out. */
  bodyOptional?: boolean
  headers?: Record<string, string>
  responses: Record<number, { description: string; schema?: z.ZodType; stream?: string }>
  /** The wire that a request comes by, as the journal names it. */
  wire?: string
  /** Called before the body is read; throws if the request is refused. */
  admit?(request: Request): void
  /** Whether this request needs no public key. */
  isPublic?(request: Request): boolean
  handle(call: Call<P, Q, B>): Promise<Response>
  /** Of several routes at one address, whether a request is meant for this one. */
  takes?(request: Request, body: unknown): boolean
  /**
   * Loads and runs the code that the first request needs, in steps with other work in between. The server calls it
   * once, right after it listens. Several routes may have the same function.
   */
  warmUp?(): Promise<void>
  /** How this wire tells of errors, if not as `errorResponse` does. */
  fail?(error: RuntimeError, request: Request): Response
}

export interface Call<P, Q, B> {
  params: P
  query: Q
  body: B
  caller: Caller
  request: Request
}

/** Ties the handler's types to the schemas. */
export const route = <P, Q, B>(one: Route<P, Q, B>): Route => one as unknown as Route

/** Ids that clients choose: any printable text, well formed, of a sensible length. */
export const clientId = z
  .string()
  .min(1)
  .max(200)
  .refine((id) => id.isWellFormed() && !/\p{Cc}/u.test(id), 'must be printable text')
  .refine((id) => id !== '.' && id !== '..', 'must not be . or .., which no address can hold')

/** Text that a client sends for the history. */
export const clientText = z
  .string()
  .max(1_000_000)
  .refine((value) => value.isWellFormed(), 'must be well-formed Unicode')

/** What somebody says. */
export const spoken = clientText.refine((value) => value.trim() !== '', 'must not be empty')

/** Requests with these methods never change state (RFC 9110, section 9.2.1). */
export const isSafeMethod = (method: string): boolean => /^(GET|HEAD|OPTIONS)$/.test(method)

/**
 * Reads and checks a request against its route. Nothing is done before all of it is right. `read`
 * is the body where it had to be read to find the route.
 */
export async function readCall<P, Q, B>(
  one: Route<P, Q, B>,
  request: Request,
  params: Record<string, string>,
  limits: BodyLimits,
  read?: { body: unknown },
): Promise<{ params: P; query: Q; body: B }> {
  const url = new URL(request.url)
  const body = async () =>
    (read ?? { body: await readJson(request, limits, one.bodyOptional) }).body
  return {
    params: check(one.params, params, 'path') as P,
    query: check(one.query, queryOf(url), 'query') as Q,
    body: (one.body ? check(one.body, await body(), 'body') : undefined) as B,
  }
}

function queryOf(url: URL): Record<string, string> {
  const query: Record<string, string> = Object.create(null)
  for (const [key, value] of url.searchParams) {
    if (key in query) throw invalid(`query.${key}`, 'is given twice. Give it once.')
    query[key] = value
  }
  return query
}

/** Compiled once: a schema is many times as dear to make as to use. */
const nothing = z.strictObject({})

function check(schema: z.ZodType | undefined, value: unknown, where: string): unknown {
  const parsed = (schema ?? nothing).safeParse(value)
  if (parsed.success) return parsed.data
  const issue = parsed.error.issues[0]!
  if (issue.code === 'unrecognized_keys') {
    const field = [where, ...issue.path, issue.keys[0]].join('.')
    throw invalid(field, 'is not known here. Leave it out.')
  }
  const field = [where, ...issue.path].join('.')
  if (where === 'path') {
    throw new RuntimeError('invalid_id', `${field}: ${issue.message}`, { field })
  }
  throw invalid(field, issue.message)
}

/** A page's own headers are for the agent; those that say who calls us are for us alone. */
export function forwardedHeaders(request: Request): Record<string, string> {
  const headers: Record<string, string> = {}
  for (const [name, value] of request.headers) {
    if (name.startsWith('x-') && !ours.test(name)) headers[name] = value
  }
  return headers
}

/** The same as options of a run, if there are any. */
export function headerOptions(request: Request): { options?: { headers: Record<string, string> } } {
  const headers = forwardedHeaders(request)
  return Object.keys(headers).length > 0 ? { options: { headers } } : {}
}

const ours = /^x-(api-key|copilot|forwarded|real-ip|request-id|requested-with)/

/** Of a content security policy: no page may frame the response, and it sends nothing elsewhere. */
export const unframed = "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

/** Headers of every response that does not set them itself. */
const defaults: readonly (readonly [string, string])[] = [
  ['x-content-type-options', 'nosniff'],
  ['x-frame-options', 'DENY'],
  ['content-security-policy', `default-src 'none'; ${unframed}`],
  ['cache-control', 'no-store'],
]

/** Adds the headers that keep browsers and proxies from sniffing, framing and storing a response. Returns the same response. */
export function withSafeHeaders(response: Response): Response {
  const { headers, status } = response
  // The headers of a 304 replace those of the response that the client has.
  if (status !== 304)
    for (const [name, value] of defaults) if (!headers.has(name)) headers.set(name, value)
  // GraphQL Yoga writes event streams with headers of its own.
  if (headers.get('content-type')?.startsWith('text/event-stream'))
    headers.set('cache-control', 'no-cache, no-store')
  if (status === 401 && !headers.has('www-authenticate'))
    headers.set('www-authenticate', 'Bearer realm="Handrail"')
  return response
}

/** A JSON response. A long one is serialized in steps, at the reader's pace, so that other requests run in between. */
export function json(value: unknown, status = 200, headers: Record<string, string> = {}) {
  return jsonText(
    isLong(value) ? unhurried(jsonSteps(value)) : JSON.stringify(value),
    status,
    headers,
  )
}

/** A response whose JSON text is ready, or made in steps at the reader's pace. */
export function jsonText(
  text: string | AsyncIterable<string>,
  status = 200,
  headers: Record<string, string> = {},
): Response {
  const type = 'application/json; charset=utf-8'
  const body = typeof text === 'string' ? text : pulled(text)
  return new Response(body, { status, headers: { 'content-type': type, ...headers } })
}

function pulled(texts: AsyncIterable<string>): ReadableStream<Uint8Array> {
  const iterator = texts[Symbol.asyncIterator]()
  return new ReadableStream(
    {
      async pull(out) {
        const { done, value } = await iterator.next()
        if (done) out.close()
        else out.enqueue(Buffer.from(value))
      },
    },
    { highWaterMark: 1 },
  )
}

/** A client's id as the value of a header. Percent-encoded if it has a `%` or a character that is not visible ASCII. */
export const headerId = (id: string): string =>
  /^[!-$&-~]+$/.test(id) ? id : encodeURIComponent(id)

/** The JSON form of an error, for every wire that has no form of its own. */
export function errorResponse(error: RuntimeError): Response {
  const { code, message, field, retryable, data } = error
  const body = { code, message, ...(field !== undefined && { field }), retryable, ...data }
  return json({ error: body }, error.status, retryHeaders(error))
}

/** When to try again, in seconds, for errors that pass. */
export function retryHeaders({ retryAfter, status }: RuntimeError): Record<string, string> {
  const seconds = retryAfter ?? (status === 503 ? 1 : undefined)
  return seconds === undefined ? {} : { 'retry-after': String(Math.ceil(seconds)) }
}

/** A store does not know where its cursor stood in the request. */
export function namingCursor(error: unknown): never {
  if (!isRuntimeError(error, 'invalid_cursor')) throw error
  throw new RuntimeError('invalid_cursor', undefined, { field: 'query.cursor', cause: error })
}
