import { z } from 'zod'
import { isRuntimeError, RuntimeError } from '../core/errors.ts'
import type { Caller } from '../core/runtime.ts'

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

const depthLimit = 64

/**
 * Reads and checks a request against its route. Nothing is done before all of it is right. `read`
 * is the body where it had to be read to find the route.
 */
export async function readCall<P, Q, B>(
  one: Route<P, Q, B>,
  request: Request,
  params: Record<string, string>,
  bodyLimit: number,
  read?: { body: unknown },
): Promise<{ params: P; query: Q; body: B }> {
  const url = new URL(request.url)
  const body = async () =>
    (read ?? { body: await readJson(request, bodyLimit, one.bodyOptional) }).body
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

const invalid = (field: string, problem: string) =>
  new RuntimeError('invalid_request', `${field}: ${problem}`, { field })

/** It keeps nothing from one whole text to the next. */
const utf8 = new TextDecoder('utf-8', { fatal: true })

export async function readJson(
  request: Request,
  limit: number,
  optional = false,
): Promise<unknown> {
  const bytes = await readBytes(request, limit)
  if (bytes.length === 0 && optional) return {}
  const type = request.headers.get('content-type') ?? ''
  if (!/^application\/json\s*(;|$)/i.test(type)) throw new RuntimeError('unsupported_media_type')
  let text: string
  try {
    text = utf8.decode(bytes)
  } catch (cause) {
    throw new RuntimeError('invalid_encoding', undefined, { cause, field: 'body' })
  }
  return parseJson(text, 'body', (cause) => {
    throw new RuntimeError('invalid_json', undefined, { cause, field: 'body' })
  })
}

/** What a client wrote as JSON, in a body or inside of one: as deep as we go, and with nothing in it that harms. */
export function parseJson(text: string, field: string, broken: (cause: unknown) => never): unknown {
  if (depthOf(text) > depthLimit) {
    const fix = `The JSON is nested deeper than ${depthLimit} levels. Flatten it.`
    throw new RuntimeError('body_too_deep', fix, { field })
  }
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (cause) {
    broken(cause)
  }
  if (/\\u|__proto__/.test(text)) refuseUnfit(value, field)
  return value
}

/** Half a character is no text, and a key that is a prototype elsewhere is no key. */
function refuseUnfit(value: unknown, field: string): void {
  if (typeof value === 'string') {
    if (!value.isWellFormed()) throw invalid(field, 'must be well-formed Unicode')
  } else if (typeof value === 'object' && value !== null) {
    for (const [key, one] of Object.entries(value)) {
      const at = `${field}.${key.toWellFormed()}`
      if (key === '__proto__') throw invalid(at, 'is not known here. Leave it out.')
      if (!key.isWellFormed()) throw invalid(at, 'must be well-formed Unicode')
      refuseUnfit(one, at)
    }
  }
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

/** How deep brackets nest outside of strings; read before parsing, so that depth costs nothing. */
function depthOf(text: string): number {
  let depth = 0
  let deepest = 0
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code === 34) i = endOfString(text, i)
    else if (code === 91 || code === 123) deepest = Math.max(deepest, ++depth)
    else if (code === 93 || code === 125) depth--
  }
  return deepest
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

export function json(value: unknown, status = 200, headers: Record<string, string> = {}) {
  return new Response(JSON.stringify(value), {
    status,
    headers: { 'content-type': 'application/json; charset=utf-8', ...headers },
  })
}

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
