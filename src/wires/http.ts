import { setImmediate } from 'node:timers/promises'
import { z } from 'zod'
import { isRuntimeError, RuntimeError } from '../core/errors.ts'
import type { Caller } from '../core/runtime.ts'
import { isLong, jsonSteps, unhurried } from '../lib/json-steps.ts'
import { pacedBytes } from './pacing.ts'

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

const depthLimit = 64
/** Commas, colons and opening brackets of one JSON text: what parsing, checking and writing it costs grows with them. */
const maxTokens = 100_000
/** Fields of one object: copying an object with 50,000 fields takes as long as parsing it. */
const maxFields = 15_000

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

/** Characters of a field's name in an error: a client may choose the name. */
const maxFieldLength = 300

function invalid(name: string, problem: string): RuntimeError {
  const field = name.slice(0, maxFieldLength).toWellFormed()
  return new RuntimeError('invalid_request', `${field}: ${problem}`, { field })
}

/** It keeps nothing from one whole text to the next. */
const utf8 = new TextDecoder('utf-8', { fatal: true })

export interface BodyLimits {
  /** Bytes of a body. */
  bytes: number
  /** Resolve when a body of this size may be read; see `Pacing`. */
  pace?: { ofBytes(count: number): Promise<void>; ofTokens(count: number): Promise<void> }
}

export async function readJson(
  request: Request,
  limits: BodyLimits,
  optional = false,
): Promise<unknown> {
  const bytes = await readBytes(request, limits.bytes)
  await limits.pace?.ofBytes(bytes.length)
  if (bytes.length === 0 && optional) return {}
  const type = request.headers.get('content-type') ?? ''
  if (!/^application\/json\s*(;|$)/i.test(type)) throw new RuntimeError('unsupported_media_type')
  let text: string
  try {
    text = utf8.decode(bytes)
  } catch (cause) {
    throw new RuntimeError('invalid_encoding', undefined, { cause, field: 'body' })
  }
  // A large body is read in several turns of the event loop: other requests run in between.
  const pause = bytes.length < pacedBytes ? () => {} : setImmediate
  await pause()
  await limits.pace?.ofTokens(refuseComplex(text, 'body'))
  await pause()
  const value = parsed(text, 'body', (cause) => {
    throw new RuntimeError('invalid_json', undefined, { cause, field: 'body' })
  })
  await pause()
  return value
}

/** What a client wrote as JSON, in a body or inside of one: as deep as we go, and with nothing in it that harms. */
export function parseJson(text: string, field: string, broken: (cause: unknown) => never): unknown {
  refuseComplex(text, field)
  return parsed(text, field, broken)
}

/** Throws `body_too_complex` if texts of JSON have more fields and items together than one body may have. */
export function refuseManyTexts(texts: readonly string[], field: string): void {
  let tokens = 0
  for (const text of texts) {
    tokens += refuseComplex(text, field)
    if (tokens > maxTokens) throw tooComplex(field)
  }
}

function parsed(text: string, field: string, broken: (cause: unknown) => never): unknown {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (cause) {
    broken(cause)
  }
  if (text.includes('\\u') || text.includes('__proto__')) {
    const unfit = findUnfit(value)
    if (unfit) throw invalid([field, ...unfit.path].join('.'), unfit.problem)
  }
  return value
}

/** Finds text that is not well-formed, and keys that would be a prototype elsewhere. */
function findUnfit(value: unknown): { path: string[]; problem: string } | undefined {
  if (typeof value === 'string')
    return value.isWellFormed() ? undefined : { path: [], problem: 'must be well-formed Unicode' }
  if (typeof value !== 'object' || value === null) return undefined
  for (const key in value) {
    const path = [key.toWellFormed()]
    if (key === '__proto__') return { path, problem: 'is not known here. Leave it out.' }
    if (!key.isWellFormed()) return { path, problem: 'must be well-formed Unicode' }
    const found = findUnfit((value as Record<string, unknown>)[key])
    if (found) return { path: [...path, ...found.path], problem: found.problem }
  }
  return undefined
}

async function readBytes(request: Request, limit: number): Promise<Uint8Array> {
  const tooLarge = () => {
    const fix = `The body is larger than ${limit} bytes. Send less at once.`
    return new RuntimeError('body_too_large', fix, { field: 'body' })
  }
  const length = request.headers.get('content-length')
  if (Number(length ?? 0) > limit) throw tooLarge()
  // Node holds a body to its length; without one it is counted as it comes.
  if (length !== null) return new Uint8Array(await request.arrayBuffer())
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of request.body ?? []) {
    size += chunk.length
    if (size > limit) throw tooLarge()
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

/** Counts brackets and separators outside of strings. Done before parsing, so that neither depth nor number costs more. */
function refuseComplex(text: string, field: string): number {
  let depth = 0
  let tokens = 0
  /** By depth: the fields of the object that is read there. */
  const fields = new Uint32Array(depthLimit + 1)
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code === 34) i = endOfString(text, i)
    else if (code === 44) tokens++
    else if (code === 58) {
      tokens++
      if (depth > 0 && ++fields[depth]! > maxFields) throw tooComplex(field)
    } else if (code === 91 || code === 123) {
      tokens++
      fields[depth + 1] = 0
      if (++depth <= depthLimit) continue
      const fix = `The JSON is nested deeper than ${depthLimit} levels. Flatten it.`
      throw new RuntimeError('body_too_deep', fix, { field })
    } else if (code === 93 || code === 125) depth--
    if (tokens > maxTokens) throw tooComplex(field)
  }
  return tokens
}

function tooComplex(field: string): RuntimeError {
  const fix =
    `The JSON has more than ${maxTokens} fields, items and brackets, or more than ${maxFields} ` +
    'fields in one object. Send less at once.'
  return new RuntimeError('body_too_complex', fix, { field })
}

/** The closing quote: most of a body is inside of strings, and is jumped over. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let slashes = 0
    while (text.charCodeAt(end - 1 - slashes) === 92) slashes++
    if (slashes % 2 === 0) return end
  }
  return text.length
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
