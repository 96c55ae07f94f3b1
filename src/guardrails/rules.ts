import { setImmediate } from 'node:timers/promises'
import { ConfigError } from '../config.ts'
import { errors } from '../core/errors.ts'
import type { ClientRules, Denial } from '../core/guard.ts'
import { type Matcher, patternMatcher, wordsMatcher } from './matcher.ts'
import { WordSearch } from './words.ts'

/** Denies what it finds; or, together with the others that allow, denies what none of them finds. */
export interface GuardRule {
  /** As the journal names it; by default where it stands: `input.0`. */
  id?: string
  decision: 'deny' | 'allow'
  /** Whole words, whatever their case. */
  words?: readonly string[]
  /** A regular expression, without looking around and back-references. */
  pattern?: RegExp | string
  /** What a message is about, as a model judges. For what is said only. */
  topics?: readonly string[]
  /** The tool whose arguments it is about, `*` for any characters. For arguments only. */
  tool?: string
  /** Told to whoever is refused. */
  reason?: string
}

export type Where = 'input' | 'output' | 'arguments'

export interface Rule {
  id: string
  decision: 'deny' | 'allow'
  reason: string
  matcher?: Matcher
  topics: readonly string[]
  tool?: string
}

/** Reads the rules of one place. What can never work is refused at the start. */
export function readRules(rules: readonly GuardRule[], where: Where, lookBack: number): Rule[] {
  return rules.map((rule, i) => readRule(rule, where, i, lookBack))
}

function readRule(rule: GuardRule, where: Where, i: number, lookBack: number): Rule {
  const { words, pattern, topics, decision, tool } = rule
  const named = `guardrails.${where}.${i}`
  if (decision !== 'deny' && decision !== 'allow')
    throw new ConfigError(`${named}.decision: write 'deny' or 'allow'.`)
  const kinds = [words, pattern, topics].filter((one) => one !== undefined)
  if (kinds.length !== 1)
    throw new ConfigError(`${named}: give it words, a pattern or topics, and one of them.`)
  if (topics && where !== 'input')
    throw new ConfigError(`${named}.topics: topics are judged in what is said, in \`input\`.`)
  const { id = `${where}.${i}`, reason = errors.guardrail.sentence } = rule
  const about = { id, decision, reason, ...(tool !== undefined && { tool }) }
  if (topics) return { ...about, topics }
  try {
    const matcher = words
      ? wordsMatcher(words)
      : patternMatcher(pattern as RegExp | string, lookBack)
    return { ...about, matcher, topics: [] }
  } catch (error) {
    throw new ConfigError(`${named}.pattern: ${(error as Error).message}`)
  }
}

/** By all rules that look at the text itself. */
export function judgeText(rules: readonly Rule[], text: string): Denial | undefined {
  return judgeBy(rules, ({ matcher }) => {
    if (!matcher) return undefined
    for (const found of matcher.matches(text)) if (found) return true
    return false
  })
}

/** The same for a long text: lets others run between the rules and within a long search. */
export async function judgeLongText(
  rules: readonly Rule[],
  text: string,
): Promise<Denial | undefined> {
  const found = new Map<Rule, boolean>()
  for (const rule of rules) {
    if (!rule.matcher) continue
    found.set(rule, await isFound(rule.matcher.matches(text)))
    if (text.length > maxUnpaused) await setImmediate()
  }
  return judgeBy(rules, (rule) => found.get(rule))
}

/** Characters that a rule searches without letting others run afterwards. */
const maxUnpaused = 4_096

async function isFound(matches: Iterable<unknown>): Promise<boolean> {
  for (const match of matches) {
    if (match) return true
    await setImmediate()
  }
  return false
}

/** A text that one of the rules cannot search in one go is denied: it could not be checked. */
export function judgeLength(rules: readonly Rule[], text: string): Denial | undefined {
  const rule = rules.find(({ matcher }) => text.length > (matcher?.maxLength ?? text.length))
  if (!rule) return undefined
  const most = rule.matcher!.maxLength!.toLocaleString('en')
  const reason = `This is longer than ${most} characters, the most that a pattern can check. Shorten it.`
  return { rule: rule.id, reason }
}

/** By what each rule finds: true, false, or nothing when it is not asked. */
export function judgeBy(
  rules: readonly Rule[],
  finds: (rule: Rule) => boolean | undefined,
): Denial | undefined {
  const asked = rules.flatMap((rule) => {
    const found = finds(rule)
    return found === undefined ? [] : [{ rule, found }]
  })
  const denied = asked.find(({ rule, found }) => rule.decision === 'deny' && found)
  const allows = asked.filter(({ rule }) => rule.decision === 'allow')
  const unmet = allows.length > 0 && !allows.some(({ found }) => found) ? allows[0] : undefined
  const { rule } = denied ?? unmet ?? {}
  return rule && { rule: rule.id, reason: rule.reason }
}

/** Words of a client's list that a refusal names. */
const mostNamed = 10

/**
 * Returns a function that judges texts by a client's own word lists. Reads the lists before the first text. The client
 * knows its words, so a refusal names the found word that comes first in the list.
 */
export function readClientRules({ allow, deny }: ClientRules) {
  let searches: Promise<[denied: WordSearch, allowed: WordSearch]> | undefined
  const read = async (): Promise<[WordSearch, WordSearch]> => [
    await searchOf(deny),
    await searchOf(allow),
  ]
  return async (text: string): Promise<Denial | undefined> => {
    searches ??= read()
    const [denied, allowed] = await searches
    const first = { words: deny.length }
    for (const found of denied.find(text, first)) {
      if (found) first.words = Math.min(first.words, found.word)
      else await setImmediate()
    }
    if (first.words < deny.length) {
      const reason = `The message is about something not allowed here: ${deny[first.words]}.`
      return { rule: 'client.deny', reason }
    }
    if (allow.length === 0 || (await isFound(allowed.find(text)))) return undefined
    const named = allow.slice(0, mostNamed).join(', ')
    const more = allow.length > mostNamed ? ` and ${allow.length - mostNamed} more` : ''
    return { rule: 'client.allow', reason: `Only these are talked about here: ${named}${more}.` }
  }
}

/** Builds a search. Lets other requests run between its steps. */
async function searchOf(words: readonly string[]): Promise<WordSearch> {
  const steps = WordSearch.build(words)
  for (;;) {
    const { done, value } = steps.next()
    if (done) return value
    await setImmediate()
  }
}
