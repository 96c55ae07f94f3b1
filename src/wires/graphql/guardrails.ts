import { type Message, textOf } from '../../core/messages.ts'
import type { GenerateInput } from './shapes.ts'

/**
 * What the client's own rules let pass, and why they do not let the last message pass. Earlier ones
 * that they do not were refused when they were said; the client has kept them in its list.
 */
export function judge({ cloud }: GenerateInput, said: readonly Message[]) {
  const rules = cloud?.guardrails?.inputValidationRules ?? {}
  const refused = new Map(said.map((message) => [message, refusal(rules, textOf(message))]))
  const passed = said.filter((message) => refused.get(message) === undefined)
  const last = said.at(-1)
  return { passed, why: last && refused.get(last) }
}

interface Rules {
  allowList?: string[]
  denyList?: string[]
}

function refusal({ allowList = [], denyList = [] }: Rules, text: string): string | undefined {
  const denied = denyList.find((words) => mentions(text, words))
  if (denied !== undefined) return `The message is about something not allowed here: ${denied}.`
  if (allowList.length === 0 || allowList.some((words) => mentions(text, words))) return undefined
  return `Only these are talked about here: ${allowList.join(', ')}.`
}

/** Whole words, whatever their case; in scripts without spaces between words, anywhere. */
function mentions(text: string, words: string): boolean {
  const wanted = words.trim().replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
  if (wanted === '') return false
  return (
    new RegExp(`(?<![\\p{L}\\p{N}])${wanted}(?![\\p{L}\\p{N}])`, 'iu').test(text) ||
    (/[\p{Lo}]/u.test(wanted) && text.includes(words.trim()))
  )
}
