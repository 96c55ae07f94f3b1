import { ConfigError } from '../config.ts'
import { errors } from '../core/errors.ts'
import type { ClientRules, Denial } from '../core/guard.ts'
import { type Matcher, patternMatcher, wordsMatcher } from './matcher.ts'

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
export async function readRules(
  rules: readonly GuardRule[],
  where: Where,
  lookBack: number,
): Promise<Rule[]> {
  return await Promise.all(rules.map((rule, i) => readRule(rule, where, i, lookBack)))
}

async function readRule(rule: GuardRule, where: Where, i: number, lookBack: number): Promise<Rule> {
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
      : await patternMatcher(pattern as RegExp | string, lookBack)
    return { ...about, matcher, topics: [] }
  } catch (error) {
    throw new ConfigError(`${named}.pattern: ${(error as Error).message}`)
  }
}

/** By all rules that look at the text itself. */
export function judgeText(rules: readonly Rule[], text: string): Denial | undefined {
  return judgeBy(rules, ({ matcher }) => matcher && !isEmpty(matcher.matches(text)))
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

/** The client's own words; it knows them, so it is told which. */
export function judgeClient({ allow, deny }: ClientRules, text: string): Denial | undefined {
  const mentions = (word: string) => !isEmpty(wordsMatcher([word]).matches(text))
  const denied = deny.find(mentions)
  if (denied !== undefined) {
    const reason = `The message is about something not allowed here: ${denied}.`
    return { rule: 'client.deny', reason }
  }
  if (allow.length === 0 || allow.some(mentions)) return undefined
  return { rule: 'client.allow', reason: `Only these are talked about here: ${allow.join(', ')}.` }
}

const isEmpty = (found: Iterable<unknown>): boolean => {
  for (const _ of found) return false
  return true
}
