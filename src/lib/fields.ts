import { ConfigError } from './config-error.ts'

/** One sentence for what cannot be at this place of a configuration; nothing for what can. */
export type Field = (given: unknown, named: string) => void

export const field =
  (write: string, takes: (given: unknown) => boolean): Field =>
  (given, named) => {
    if (!takes(given)) throw new ConfigError(`${named}: write ${write}.`)
  }

/** An object with these fields and no others: one that is misspelt would be passed over in silence. */
export function fields<T extends object>(
  known: Record<keyof T, Field>,
  needed: readonly (keyof T & string)[] = [],
): Field {
  const names = Object.keys(known)
  return (given, named) => {
    object(given, named)
    const at = named === '' ? '' : `${named}.`
    for (const [name, one] of Object.entries(given as object)) {
      if (!Object.hasOwn(known, name))
        throw new ConfigError(`${at}${name} is not known. Known: ${names.join(', ')}.`)
      if (one !== undefined) known[name as keyof T](one, `${at}${name}`)
    }
    for (const name of needed)
      if ((given as T)[name] === undefined) throw new ConfigError(`${at}${name} is missing.`)
  }
}

export const listOf =
  (one: Field): Field =>
  (given, named) => {
    if (!Array.isArray(given)) throw new ConfigError(`${named}: write a list.`)
    given.forEach((each, i) => {
      one(each, `${named}.${i}`)
    })
  }

/** Names that are the operator's own. */
export const byName =
  (one: Field): Field =>
  (given, named) => {
    object(given, named)
    for (const [name, each] of Object.entries(given as object)) one(each, `${named}.${name}`)
  }

export const either =
  (write: string, ...all: readonly Field[]): Field =>
  (given, named) =>
    field(write, () => all.some((one) => takes(one, given)))(given, named)

export const object = field(
  'an object: { ... }',
  (given) => typeof given === 'object' && given !== null && !Array.isArray(given),
)
export const anything: Field = () => {}
export const text = field(
  'a text that is not empty',
  (given) => typeof given === 'string' && given !== '',
)
export const yesNo = field('true or false', (given) => typeof given === 'boolean')
export const among = (...words: readonly string[]): Field =>
  field(words.join(' or '), (given) => words.includes(given as string))
export const whole = (least: number, most = Number.MAX_SAFE_INTEGER): Field => {
  const limit =
    most === Number.MAX_SAFE_INTEGER ? ` of ${least} or more` : ` of ${least} to ${most}`
  return field(`a whole number${limit}`, (given) => {
    return Number.isInteger(given) && Number(given) >= least && Number(given) <= most
  })
}
export const amount = (least: number): Field =>
  field(`a number of ${least} or more`, (given) => Number.isFinite(given) && Number(given) >= least)

function takes(one: Field, given: unknown): boolean {
  try {
    one(given, '')
    return true
  } catch {
    return false
  }
}
