import { type Message, textOf } from '../../core/messages.ts'
import type { GenerateInput } from './shapes.ts'

/** Why the client's own rules do not let a message pass; undefined: they do. */
export function refusal({ cloud }: GenerateInput, said: readonly Message[]): string | undefined {
  const { allowList = [], denyList = [] } = cloud?.guardrails?.inputValidationRules ?? {}
  for (const message of said) {
    const text = textOf(message)
    const denied = denyList.find((words) => mentions(text, words))
    if (denied !== undefined) return `The message is about something not allowed here: ${denied}.`
    if (allowList.length > 0 && !allowList.some((words) => mentions(text, words)))
      return `Only these are talked about here: ${allowList.join(', ')}.`
  }
  return undefined
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
