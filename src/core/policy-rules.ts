import { atOnce } from '../lib/at-once.ts'
import { ConfigError } from '../lib/config-error.ts'
import { isJson, isPlain } from '../lib/json.ts'
import type { PolicyRule } from './policy.ts'
import { type Reading, readArguments } from './predicates.ts'

export interface ReadRule {
  /** `when` reads the parsed input, the conditions as data what JSON represents of it. */
  arguments(input: unknown, shown?: unknown): Reading
}

const read = new WeakMap<PolicyRule, ReadRule>()

/** A rule with its conditions made ready, once. Throws with one sentence for what can never work. */
export function readRule(rule: PolicyRule, named = 'policy'): ReadRule {
  const known = read.get(rule)
  if (known) return known
  checkFields(rule, named)
  const made = { arguments: readingsOf(rule, named) }
  read.set(rule, made)
  return made
}

function readingsOf({ arguments: given, when }: PolicyRule, named: string): ReadRule['arguments'] {
  const data =
    given === undefined ? () => 'yes' as const : readArguments(given, `${named}.arguments`)
  return (input, shown = input) => {
    const reading = data(input === shown ? input : readable(input, shown))
    if (reading !== 'yes' || when === undefined) return reading
    return asked(when, input)
  }
}

/** Each parsed argument that JSON represents, and the others as the model sent them. */
export function readable(input: unknown, shown: unknown): unknown {
  if (typeof input !== 'object' || input === null || !isPlain(input)) return shown
  const sent = Object(shown) as Record<string, unknown>
  const parts = Object.entries(input).map(([name, part]) => {
    if (isJson(part)) return [name, part]
    return [name, Object.hasOwn(sent, name) ? sent[name] : undefined]
  })
  return Object.fromEntries(parts)
}

/** A promise is not an answer, however true it looks. */
function asked(when: (input: unknown) => unknown, input: unknown): Reading {
  const said = atOnce(() => when(input))
  return said === true ? 'yes' : said === false ? 'no' : 'unread'
}

interface Field {
  write: string
  takes(given: unknown): boolean
}

const text: Field = {
  write: 'a text that is not empty',
  takes: (given) => typeof given === 'string' && given !== '' && given.length <= 200,
}
const among = (...words: string[]): Field => ({
  write: words.join(' or '),
  takes: (given) => typeof given === 'string' && words.includes(given),
})
/** Longer than anybody waits, and shorter than what a date can hold. */
const longestTimeout = 366 * 86_400_000

const fields: Record<keyof PolicyRule, Field> = {
  name: text,
  tool: text,
  server: text,
  agent: text,
  access: among('read', 'write', 'execute'),
  arguments: { write: "conditions by the argument's name", takes: () => true },
  when: { write: 'a function', takes: (given) => typeof given === 'function' },
  decision: among('allow', 'ask', 'deny'),
  timeout: {
    write: 'milliseconds, up to a year',
    takes: (given) =>
      Number.isInteger(given) && Number(given) > 0 && Number(given) <= longestTimeout,
  },
  atTimeout: among('reject', 'approve', 'stop'),
  audience: {
    write: "who may decide: ['owner', 'approver']",
    takes: (given) =>
      Array.isArray(given) &&
      given.length > 0 &&
      given.every((one) => typeof one === 'string' && /^\w+$/.test(one)),
  },
  reason: text,
}

/** What is said of asking makes sense only where it is asked, and a reason where it is denied. */
const only: Partial<Record<keyof PolicyRule, PolicyRule['decision']>> = {
  timeout: 'ask',
  atTimeout: 'ask',
  audience: 'ask',
  reason: 'deny',
}

function checkFields(rule: PolicyRule, named: string): void {
  if (typeof rule !== 'object' || rule === null || Array.isArray(rule))
    throw new ConfigError(`${named}: write a rule: { tool: 'send', decision: 'ask' }.`)
  const { decision } = rule
  if (!fields.decision.takes(decision))
    throw new ConfigError(`${named}.decision: write ${fields.decision.write}.`)
  for (const [name, given] of Object.entries(rule)) {
    // A field that is misspelt would make its rule fit more than it says.
    if (!Object.hasOwn(fields, name))
      throw new ConfigError(
        `${named}.${name} is not known. Known: ${Object.keys(fields).join(', ')}.`,
      )
    if (given === undefined) continue
    const field = name as keyof PolicyRule
    if (!fields[field].takes(given))
      throw new ConfigError(`${named}.${name}: write ${fields[field].write}.`)
    if (only[field] !== undefined && only[field] !== decision)
      throw new ConfigError(`${named}.${name} is for rules that ${only[field]}. Leave it out.`)
  }
}
