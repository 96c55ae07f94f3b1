import { RuntimeError } from '../../core/errors.ts'
import type { ClientRules } from '../../core/guard.ts'
import type { GenerateInput } from './shapes.ts'

/** Words or topics in one list, and characters of each and of all. */
const maxWords = 1_000
const maxWordLength = 200
const maxListLength = 50_000

/** The page's own rules, in addition to those of the operator. Throws for a list that is too long. */
export function clientRulesOf({ cloud }: GenerateInput): ClientRules | undefined {
  const { allowList, denyList } = cloud?.guardrails?.inputValidationRules ?? {}
  const allow = readList(allowList, 'allowList')
  const deny = readList(denyList, 'denyList')
  return allow.length + deny.length > 0 ? { allow, deny } : undefined
}

function readList(words: readonly string[] | null | undefined, name: string): readonly string[] {
  const field = `cloud.guardrails.inputValidationRules.${name}`
  const refuse = (message: string) => {
    throw new RuntimeError('invalid_request', `${field}: ${message}`, { field })
  }
  if (!words) return []
  if (words.length > maxWords) refuse(`has ${words.length} entries. Send at most ${maxWords}.`)
  const long = words.findIndex((word) => word.length > maxWordLength)
  if (long >= 0)
    refuse(`entry ${long} is longer than ${maxWordLength} characters. Send a shorter one.`)
  const length = words.reduce((sum, word) => sum + word.length, 0)
  if (length > maxListLength)
    refuse(`has ${length} characters in all. Send at most ${maxListLength}.`)
  return words
}
