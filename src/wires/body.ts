import { setImmediate } from 'node:timers/promises'
import { RuntimeError } from '../core/errors.ts'
import { bodySource } from './body-source.ts'
import { pacedBytes } from './pacing.ts'

/** Levels of nesting of one JSON text. */
const depthLimit = 64
/** Commas, colons and opening brackets of one JSON text. The cost of parsing, checking and writing it grows with them. */
const maxTokens = 100_000
/** Fields of one object: copying an object with 50,000 fields takes as long as parsing it. */
const maxFields = 15_000

/** Stateless between complete texts, so all requests share it. */
const utf8 = new TextDecoder('utf-8', { fatal: true })

export interface BodyLimits {
  /** Bytes of a body. */
  bytes: number
  /** Resolve when a body of this size may be read; see `Pacing`. */
  pace?: { ofBytes(count: number): Promise<void>; ofTokens(count: number): Promise<void> }
  /** Counts the bytes that the server holds for this body until it is parsed; see `BodyMemory`. */
  memory?: { grow(bytes: number): void; free(): void }
}

export async function readJson(
  request: Request,
  limits: BodyLimits,
  optional = false,
): Promise<unknown> {
  try {
    return await jsonOf(request, limits, optional)
  } finally {
    limits.memory?.free()
  }
}

async function jsonOf(request: Request, limits: BodyLimits, optional: boolean): Promise<unknown> {
  const bytes = await readBytes(request, limits)
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

/** Parses the JSON of a client, in a body or inside of one, within the limits of depth and size. Refuses `__proto__` and lone surrogates. */
export function parseJson(text: string, field: string, broken: (cause: unknown) => never): unknown {
  refuseComplex(text, field)
  return parsed(text, field, broken)
}

/**
 * Returns a parser for JSON texts inside one request, which together may be as complex as one body. The parser returns
 * undefined for a text that is no JSON, and throws like `parseJson`. With `echoes`, it accepts `__proto__` and lone
 * surrogates: the texts are what the server sent before, and are only compared.
 */
export function textParser(echoes = false): (text: string, field: string) => unknown {
  const count = tokenCounter()
  return (text, field) => {
    if (/^\s*[[{]/.test(text)) count(text, field) // other texts hold one value at most
    return parsed(text, field, () => {}, echoes)
  }
}

/**
 * Returns a function that counts the fields, items and brackets of JSON texts. It throws `body_too_deep` for a text that is
 * nested too deeply, and `body_too_complex` if the texts have more of them together than one body may have.
 */
export function tokenCounter(): (text: string, field: string) => void {
  let tokens = 0
  return (text, field) => {
    tokens += refuseComplex(text, field)
    if (tokens > maxTokens) throw tooComplex(field)
  }
}

function parsed(
  text: string,
  field: string,
  broken: (cause: unknown) => void,
  echoes = false,
): unknown {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (cause) {
    broken(cause)
  }
  if (!echoes && (text.includes('\\u') || text.includes('__proto__'))) {
    const unfit = findUnfit(value)
    if (unfit) throw invalid([field, ...unfit.path].join('.'), unfit.problem)
  }
  return value
}

/** Finds text that is not well-formed, and keys that could set a prototype. */
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

/** Chunks after which other requests run. */
const chunksPerTurn = 500
/**
 * Bytes of chunk framing that a body may have beyond its own size. Each chunk has at least 5 bytes of framing and takes
 * 2 to 5 µs. Chunks of one byte are refused after 16,000 of them; chunks of 5 bytes are never refused.
 */
const maxFrameBytes = 64 * 1024

/**
 * Reads the body into one buffer that grows with it. Chunks are not kept: each takes some 230 bytes of memory beside
 * its bytes, and a client may send one byte in each.
 */
async function readBytes(
  request: Request,
  { bytes: limit, memory }: BodyLimits,
): Promise<Uint8Array> {
  const tooLarge = () => {
    const fix = `The body is larger than ${limit} bytes. Send less at once.`
    return new RuntimeError('body_too_large', fix, { field: 'body' })
  }
  const length = request.headers.get('content-length')
  if (Number(length ?? 0) > limit) throw tooLarge()
  if (length !== null && Number(length) < pacedBytes)
    return new Uint8Array(await request.arrayBuffer())
  let buffer = new Uint8Array(pacedBytes)
  let size = 0
  let chunks = 0
  const source = bodySource(request)
  for await (const chunk of source.chunks) {
    const end = size + chunk.length
    if (end > limit) throw tooLarge()
    if (source.received() > 2 * end + maxFrameBytes) throw tooManyChunks()
    memory?.grow(chunk.length)
    if (end > buffer.length) buffer = enlarged(buffer, Math.max(end, buffer.length * 2))
    buffer.set(chunk, size)
    size = end
    if (++chunks % chunksPerTurn === 0) await setImmediate()
  }
  return buffer.subarray(0, size)
}

function tooManyChunks(): RuntimeError {
  const fix = 'The body has too many chunks of a few bytes. Send larger chunks.'
  return new RuntimeError('body_too_complex', fix, { field: 'body' })
}

function enlarged(buffer: Uint8Array, length: number): Uint8Array<ArrayBuffer> {
  const larger = new Uint8Array(length)
  larger.set(buffer)
  return larger
}

/** Counts brackets and separators outside strings, before the text is parsed, so that a deep or long text is refused early. */
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

/** Returns the place of the closing quote. Most of a body is inside strings, which are skipped. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let slashes = 0
    while (text.charCodeAt(end - 1 - slashes) === 92) slashes++
    if (slashes % 2 === 0) return end
  }
  return text.length
}

/** Characters of a field's name in an error: a client may choose the name. */
const maxFieldLength = 300

export function invalid(name: string, problem: string): RuntimeError {
  const field = name.slice(0, maxFieldLength).toWellFormed()
  return new RuntimeError('invalid_request', `${field}: ${problem}`, { field })
}
