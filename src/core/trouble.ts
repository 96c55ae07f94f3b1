import { masked } from '../lib/masked.ts'
import { shownLine } from '../lib/visible.ts'
import { RuntimeError, toRuntimeError } from './errors.ts'

/** An error as the log has it. */
export interface Trouble {
  code: string
  error: string
  /** What is behind it, the nearest first. */
  causes: string[]
  /** Where the innermost was thrown. */
  at: string[]
}

/** Errors behind an error, characters of each that are read and told, and places in the code. */
const most = { causes: 5, read: 4_000, words: 500, at: 5 }

/**
 * What an operator is told of an error. Not the error itself: clients of providers hang requests and answers
 * on theirs, with keys and what people said in them. `secrets` are the known ones of its run.
 */
export function troubleOf(error: unknown, secrets: readonly string[] = []): Trouble {
  const words = (text: string) => shownLine(masked(text.slice(0, most.read), secrets), most.words)
  const { code, message } = toRuntimeError(error, 'agent_failed')
  const chain: unknown[] = []
  let next = error
  while (next !== undefined && chain.length <= most.causes) {
    chain.push(next)
    next = next instanceof Error ? next.cause : undefined
  }
  const behind = error instanceof RuntimeError ? chain.slice(1) : chain
  const last = chain.findLast((one) => one instanceof Error)
  const places = last?.stack?.split('\n').filter((line) => /^\s+at /.test(line)) ?? []
  return {
    code,
    error: words(message),
    causes: behind.map((one) => words(wordsOf(one))),
    at: places.slice(0, most.at).map((line) => line.trim()),
  }
}

/** Providers also send what is no error, in the middle of an answer. Of that its message, and no more. */
function wordsOf(thrown: unknown): string {
  if (thrown instanceof Error || Object(thrown) !== thrown) return String(thrown)
  const { error = thrown } = thrown as { error?: unknown }
  const { message, code } = Object(error) as { message?: unknown; code?: unknown }
  if (typeof message !== 'string') return 'an object'
  return code === undefined || code === null ? message : `${message} (${String(code)})`
}
