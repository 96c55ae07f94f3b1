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
  readonly #kept = new Map<string, { secrets: Secrets; characters: number; owner: string }>()
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
    let forwarded: unknown = { ...options.forwarded }
    for (const { path, value } of secrets.forwarded) forwarded = withValue(forwarded, path, value)
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

  /** The texts among a run's secrets, for whoever must not repeat them. */
  textsOf(runId: string): string[] {
    const secrets = this.#kept.get(runId)?.secrets
    if (!secrets) return []
    const { forwarded, headers, others } = secrets
    const values = [...forwarded.map(({ value }) => value), ...Object.values(headers)]
    const further = Object.values(others).filter((text) => text.length >= minOther)
    return [...values.flatMap(textsIn), ...further]
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
  const open = entries.flatMap(([at, one]): [string | number, unknown][] => {
    const name = nameOf(value, at, path)
    if (one !== clientId && isSecret(name, one, count.text)) {
      found.push({ path: [...path, at], value: one })
      return Array.isArray(value) ? [[at, redacted]] : []
    }
    return [[at, withoutSecrets(one, [...path, at], found, clientId, count)]]
  })
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
 * The name of a field or item. It may be written beside the value: `{ name: 'token', value: '...' }`, `['token', '...']` in a list of such
 * pairs, `['--token', '...']`, or names and values in turn in a list of headers.
 */
function nameOf(parent: object, at: string | number, path: Path): string {
  if (typeof at === 'string') {
    if (!valueField.test(at)) return at
    const name = Object.entries(parent).find(
      ([field, one]) => nameField.test(field) && typeof one === 'string',
    )?.[1] as string | undefined
    return name !== undefined && isSecretName(name, '') ? name : at
  }
  const before: unknown = at > 0 ? (parent as unknown[])[at - 1] : undefined
  if (typeof before !== 'string' || before.length > maxPairName) return ''
  const isOption = /^--?[a-z]/i.test(before)
  const isPair = (parent as unknown[]).length === 2 && typeof path.at(-1) === 'number'
  const isHeader = at % 2 === 1 && /headers?$/i.test(String(path.at(-1) ?? ''))
  return isOption || isPair || isHeader ? before : ''
}

const nameField = /^(name|key|header|field|label|id|variable|var|param|parameter|env|title)$/i
const valueField = /^(values?|val|content|data|text|default|defaultValue)$/i
const maxPairName = 100

const tooMany = new RuntimeError(
  'invalid_request',
  `properties: a request may have ${maxValues} values in its properties, forwardedProps, config and context. Send fewer.`,
  { field: 'properties' },
)

/** A copy with the value at its path; what is not there on the way is made. */
function withValue(base: unknown, [at, ...rest]: Path, value: unknown): unknown {
  if (at === undefined) return value
  if (typeof at === 'number') {
    const list: unknown[] = Array.isArray(base) ? [...base] : []
    list[at] = withValue(list[at], rest, value)
    return list
  }
  const object = Object(base) as Record<string, unknown>
  const inner = Object.hasOwn(object, at) ? object[at] : undefined
  return { ...object, [at]: withValue(inner, rest, value) }
}

/** Shorter values of other headers are words, such as a language. */
const minOther = 12

function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value, ...secretsWithin(value)]
  if (typeof value !== 'object' || value === null) return []
  return Object.values(value).flatMap(textsIn)
}

const isEmpty = (one: object): boolean => Object.keys(one).length === 0
