import { heapShare } from '../lib/heap.ts'
import { withoutTexts } from '../lib/masked.ts'
import type { Draft, RunOptions } from './entries.ts'
import { RuntimeError } from './errors.ts'
import { isSecretName } from './secret-names.ts'
import {
  isSecretText,
  redacted,
  secretsWithin,
  type TextBudget,
  textBudget,
  withoutSecretsIn,
} from './secret-texts.ts'
import { ended, type ThreadState } from './state.ts'
import type { Thread } from './thread.ts'

/** The parts of a request that belong to its run and are never written: tokens, keys, passwords, and most headers. */
export interface Secrets {
  /** Values out of `forwarded`, each with its path. */
  forwarded: readonly { path: Path; value: unknown }[]
  /** Instructions that contain a secret, with their places in the list. */
  instructions: readonly { at: number; text: string }[]
  /** Headers whose name or value looks like a secret. */
  headers: Readonly<Record<string, string>>
  /** The other headers that are not in the list of those that may be written. */
  others: Readonly<Record<string, string>>
}

type Path = readonly (string | number)[]

/** Headers that are written to the journal unless their value looks like a secret. The operator may name more. */
export const keptHeaders = [
  ...['x-tenant', 'x-tenant-id', 'x-locale', 'x-language', 'x-timezone'],
  ...['x-correlation-id', 'x-trace-id', 'x-client-name', 'x-client-version'],
]

/** Values in the properties of one request, at all depths together. Each is examined. */
const maxValues = 10_000

/** Secrets of all runs together, as JSON text, in characters. */
const maxCharacters = Math.min(64 * 1024 * 1024, heapShare(1 / 16))

/**
 * The secrets of runs that are under way, in memory only: a run that goes on after a restart, or on
 * another server, goes on without them until a request brings them again.
 */
export class RunSecrets {
  readonly #kept = new Map<string, Kept>()
  /** By tenant and user: the runs with secrets, oldest first, and the characters of these secrets. */
  readonly #owners = new Map<string, { runIds: Set<string>; characters: number }>()
  readonly #headers: ReadonlySet<string>
  readonly #maxRuns: number
  readonly #maxCharacters: number
  #characters = 0

  constructor({ headers = [], maxRuns = 10_000, maxTotal = maxCharacters }: SecretsOptions = {}) {
    this.#headers = new Set([...keptHeaders, ...headers].map((name) => name.toLowerCase()))
    this.#maxRuns = maxRuns
    this.#maxCharacters = maxTotal
  }

  /**
   * Returns the options that may be written, and the secrets that were in them. The client's name of the thread is no
   * secret: some wires call it a session id.
   */
  split(options: RunOptions, clientId?: string): { options: RunOptions; secrets: Secrets } {
    const found: { path: Path; value: unknown }[] = []
    const forwarded = withoutSecrets(options.forwarded, [], found, clientId)
    const { open, headers, others } = this.#splitHeaders(options.headers ?? {})
    const budget = textBudget()
    const masked = options.instructions?.map((text) => withoutSecretsIn(text, budget))
    const instructions = (options.instructions ?? []).flatMap((text, at) =>
      masked?.[at] === text ? [] : [{ at, text }],
    )
    return {
      options: {
        ...options,
        ...(masked && { instructions: masked }),
        ...(options.forwarded && { forwarded: forwarded as RunOptions['forwarded'] }),
        ...(options.headers && { headers: open }),
      },
      secrets: { forwarded: found, instructions, headers, others },
    }
  }

  /** Until the run ends, whichever server drives it then. A request without secrets leaves those that are there. */
  keep(thread: Thread, runId: string, brought: Secrets): void {
    const run = thread.state.runs.get(runId)
    if (!run || ended(run)) return
    const before = this.#kept.get(runId)?.secrets ?? nothing
    const hasSecrets = brought.forwarded.length > 0 || !isEmpty(brought.headers)
    const { forwarded, headers } = hasSecrets ? brought : before
    const others = isEmpty(brought.others) ? before.others : brought.others
    // The instructions of the run are those of its first request.
    const instructions = this.#kept.has(runId) ? before.instructions : brought.instructions
    const secrets = { forwarded, instructions, headers, others }
    if (Object.values(secrets).every(isEmpty)) return
    const isNew = !this.#drop(runId)
    const characters = JSON.stringify(secrets).length
    const owner = JSON.stringify([thread.state.tenant, thread.state.owner])
    const owned = this.#owners.get(owner) ?? { runIds: new Set(), characters: 0 }
    this.#owners.set(owner, owned)
    owned.runIds.add(runId)
    owned.characters += characters
    this.#kept.set(runId, { secrets, characters, owner })
    this.#characters += characters
    this.#evict()
    if (!isNew) return
    const unlisten = thread.listen(() => {
      if (!ended(run)) return
      this.#drop(runId)
      unlisten()
    })
  }

  /**
   * Drops the secrets of the runs of a thread that ended last. The `Thread` that they were kept with may have left
   * memory while its run waited, and its listener with it.
   */
  dropEnded({ lastEnded }: Pick<ThreadState, 'lastEnded'>): void {
    for (const runId of lastEnded) this.#drop(runId)
  }

  /** A run's options with its secrets in their places. */
  join(runId: string, options: RunOptions): RunOptions {
    const secrets = this.#kept.get(runId)?.secrets
    if (!secrets) return options
    const forwarded = withValues(options.forwarded ?? {}, secrets.forwarded)
    const instructions = [...(options.instructions ?? [])]
    for (const { at, text } of secrets.instructions)
      if (instructions[at] !== undefined) instructions[at] = text
    return {
      ...options,
      ...(options.instructions && { instructions }),
      forwarded: forwarded as RunOptions['forwarded'],
      headers: { ...options.headers, ...secrets.others, ...secrets.headers },
    }
  }

  /** Returns a header of a run as `join` does, without the cost of joining all secrets. */
  header(runId: string, options: RunOptions, name: string): string | undefined {
    const secrets = this.#kept.get(runId)?.secrets
    return secrets?.headers[name] ?? secrets?.others[name] ?? options.headers?.[name]
  }

  /** Returns the secret strings of a run, which must be redacted. Returns the same array until the secrets change. */
  textsOf(runId: string): readonly string[] {
    const kept = this.#kept.get(runId)
    if (!kept) return noTexts
    kept.texts ??= textsAmong(kept.secrets)
    return kept.texts
  }

  #splitHeaders(all: Record<string, string>) {
    const open: Record<string, string> = {}
    const headers: Record<string, string> = {}
    const others: Record<string, string> = {}
    for (const [name, value] of Object.entries(all)) {
      const place = isSecret(name, value)
        ? headers
        : this.#headers.has(name.toLowerCase())
          ? open
          : others
      place[name] = value
    }
    return { open, headers, others }
  }

  /** Drops the oldest secrets of the user that takes most of the exceeded limit, so that no user drops those of another. */
  #evict(): void {
    for (;;) {
      const tooLong = this.#characters > this.#maxCharacters
      if (!tooLong && this.#kept.size <= this.#maxRuns) return
      let most = 0
      let oldest = ''
      for (const { runIds, characters } of this.#owners.values()) {
        const taken = tooLong ? characters : runIds.size
        if (taken <= most) continue
        most = taken
        ;[oldest = ''] = runIds
      }
      this.#drop(oldest)
    }
  }

  #drop(runId: string): boolean {
    const kept = this.#kept.get(runId)
    if (!kept) return false
    const owned = this.#owners.get(kept.owner)!
    owned.runIds.delete(runId)
    owned.characters -= kept.characters
    if (owned.runIds.size === 0) this.#owners.delete(kept.owner)
    this.#characters -= kept.characters
    return this.#kept.delete(runId)
  }
}

/** Remotes may repeat in an error what they were sent. Its sentence is written without these texts. */
export function withoutTextsIn(one: Draft, secrets: () => readonly string[]): Draft {
  if (one.kind === 'effect.failed' || one.kind === 'run.failed') {
    const { error } = one.body
    const message = withoutTexts(error.message, secrets())
    return { ...one, body: { ...one.body, error: { ...error, message } } } as Draft
  }
  if (one.kind !== 'event') return one
  const { message } = Object(one.body.value) as { message?: unknown }
  if (typeof message !== 'string') return one
  const value = { ...Object(one.body.value), message: withoutTexts(message, secrets()) }
  return { ...one, body: { ...one.body, value } }
}

export interface SecretsOptions {
  /** Further headers that may be written. */
  headers?: readonly string[]
  maxRuns?: number
  maxTotal?: number
}

const nothing: Secrets = { forwarded: [], instructions: [], headers: {}, others: {} }

interface Kept {
  secrets: Secrets
  characters: number
  owner: string
  /** The result of `textsAmong`, computed by the first call of `textsOf`. */
  texts?: readonly string[]
}

const noTexts: readonly string[] = []

/** A copy without the secrets, at any depth; `found` gets them. Bodies are nested 64 levels deep at most. */
export function withoutSecrets(
  value: unknown,
  path: Path,
  found: { path: Path; value: unknown }[],
  clientId?: string,
  count = { left: maxValues, text: textBudget() },
): unknown {
  if (typeof value !== 'object' || value === null) return value
  const entries: [string | number, unknown][] = Array.isArray(value)
    ? [...value.entries()]
    : Object.entries(value)
  count.left -= entries.length
  if (count.left < 0) throw tooMany
  const nameOf = namesIn(value, path.at(-1))
  const open: [string | number, unknown][] = []
  for (const [at, one] of entries) {
    if (one !== clientId && isSecret(nameOf(at), one, count.text)) {
      found.push({ path: [...path, at], value: one })
      if (Array.isArray(value)) open.push([at, redacted])
    } else if (typeof one === 'object' && one !== null)
      open.push([at, withoutSecrets(one, [...path, at], found, clientId, count)])
    else open.push([at, one])
  }
  return Array.isArray(value) ? open.map(([, one]) => one) : Object.fromEntries(open)
}

/** Whether a value is a secret by its name or, if it is a text, by its form. */
export function isSecret(name: string, value: unknown, budget = textBudget()): boolean {
  if (isSecretName(name, value)) return true
  return (
    typeof value === 'string' && isSecretText(value, budget, (inner) => holdsSecret(inner, budget))
  )
}

function holdsSecret(value: unknown, budget: TextBudget): boolean {
  if (typeof value === 'string') return isSecret('', value, budget)
  const found: { path: Path; value: unknown }[] = []
  withoutSecrets(value, [], found, undefined, { left: maxValues, text: budget })
  return found.length > 0
}

/**
 * Returns a function that gives the name of a field or item. The name may be written beside the value: `{ name: 'token', value: '...' }`,
 * `{ type: 'bearer', value: '...' }`, `['token', '...']` in a list of such pairs, `['--token', '...']`, or names and values in turn in a
 * list of headers. The names beside the values of a parent are looked for once: a parent may have thousands of values.
 */
function namesIn(parent: object, place: string | number | undefined) {
  let beside: NamesBeside | undefined
  return (at: string | number): string => {
    if (typeof at === 'number') return nameInList(parent as unknown[], at, place)
    if (!valueField.test(at)) return at
    beside ??= namesBeside(parent)
    return beside.name ?? (typedField.test(at) ? beside.type : undefined) ?? at
  }
}

interface NamesBeside {
  /** A secret name in a field such as `name` or `key`. */
  name?: string
  /** The type of an object that is a credential. */
  type?: string
}

function namesBeside(parent: object): NamesBeside {
  const found: NamesBeside = {}
  for (const [field, value] of Object.entries(parent)) {
    if (typeof value !== 'string') continue
    if (found.name === undefined && nameField.test(field) && isSecretName(value, ''))
      found.name = value
    if (typeField.test(field) && secretType.test(value)) found.type = 'credential'
  }
  return found
}

function nameInList(list: readonly unknown[], at: number, place: string | number | undefined) {
  const before = at > 0 ? list[at - 1] : undefined
  if (typeof before !== 'string' || before.length > maxPairName) return ''
  const isOption = /^--?[a-z]/i.test(before)
  const isPair = list.length === 2 && typeof place === 'number'
  const isHeader = at % 2 === 1 && /headers?$/i.test(String(place ?? ''))
  return isOption || isPair || isHeader ? before : ''
}

const nameField =
  /^(k|name|key|header|field|label|id|variable|var|param|parameter|property|attribute|setting|env|title)$/i
const valueField = /^(v|val|values?|content|data|text|default|defaultValue)$/i
const typeField = /^(type|kind|scheme)$/i
/** Fields that hold the secret of a credential. Its other fields may describe it: `{ type: 'password', text: 'Enter your password' }`. */
const typedField = /^(v|val|values?)$/i
const secretType = /^(bearer|token|api[-_ ]?key|password)$/i
const maxPairName = 100

const tooMany = new RuntimeError(
  'invalid_request',
  `properties: a request may have ${maxValues} values in its properties, forwardedProps, config and context. Send fewer.`,
  { field: 'properties' },
)

/**
 * Returns a copy with the values at their paths, and adds missing objects and lists. Copies each object and list once, however
 * many values it gets.
 */
function withValues(base: object, values: Secrets['forwarded']): unknown {
  const root = { inner: base as unknown }
  const copies = new Set<unknown>([root])
  for (const { path, value } of values) {
    let parent: object = root
    let last: string | number = 'inner'
    for (const at of path) {
      const before: unknown = Object.hasOwn(parent, last) ? Reflect.get(parent, last) : undefined
      const fits = copies.has(before) && (typeof at === 'string' || Array.isArray(before))
      const next = fits ? (before as object) : copyFor(at, before)
      if (!fits) {
        copies.add(next)
        assign(parent, last, next)
      }
      parent = next
      last = at
    }
    assign(parent, last, value)
  }
  return copies.has(root.inner) ? root.inner : { ...base }
}

function copyFor(at: string | number, before: unknown): object {
  if (typeof at === 'number') return Array.isArray(before) ? [...before] : []
  return { ...Object(before) }
}

/** An assignment to `__proto__` would set the prototype instead. */
function assign(parent: object, at: string | number, value: unknown): void {
  if (at !== '__proto__') Reflect.set(parent, at, value)
  else Object.defineProperty(parent, at, { ...field, value })
}
const field = { writable: true, enumerable: true, configurable: true }

/** Shorter values of other headers are words, such as a language. */
const minOther = 12

function textsAmong({ forwarded, headers, others }: Secrets): readonly string[] {
  const values = [...forwarded.map(({ value }) => value), ...Object.values(headers)]
  const further = Object.values(others).filter((text) => text.length >= minOther)
  return [...values.flatMap(textsIn), ...further]
}

/** Returns all texts in a value, and the secrets in each of them. */
export function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value, ...secretsWithin(value)]
  if (typeof value !== 'object' || value === null) return []
  return Object.values(value).flatMap(textsIn)
}

const isEmpty = (one: object): boolean => Object.keys(one).length === 0
