import { canonical } from '../lib/canonical.ts'
import { ConfigError } from '../lib/config-error.ts'
import { linearPattern } from '../lib/linear.ts'
import { isWithin } from './within.ts'

/** What an argument must be, written as data. All that is said of it must hold. */
export interface Condition {
  equals?: unknown
  oneOf?: readonly unknown[]
  startsWith?: string
  endsWith?: string
  /** A part of a text, or an element of a list. */
  contains?: unknown
  /** A regular expression found in it; without looking around and back-references. */
  matches?: string | RegExp
  over?: number
  under?: number
  /** True: it is not there at all; false: it is. */
  absent?: boolean
  /** A path that leads into this folder, whatever `..` it takes. */
  within?: string
  /** An address of http or https with this host; `*.example.com` for those below it. */
  host?: string | readonly string[]
  /** Of a list that is not empty: each element. */
  every?: Condition
  /** Of a list: at least one element. */
  any?: Condition
  /** Of an object: its own parts. */
  at?: Arguments
}

/** By the argument's name; `to.address` is a part of it, `to\.address` a name with a dot. */
export type Arguments = Readonly<Record<string, Condition>>

/** `unread`: what is there cannot be judged by this. It is missing, of another kind, or too long. */
export type Reading = 'yes' | 'no' | 'unread'

type Test = (value: unknown) => Reading

interface Kind {
  /** What to write, for whoever wrote something else. */
  write: string
  takes(given: unknown): boolean
  make(given: never, named: string): Test
}

/** Reads conditions on arguments. Throws with the place and what to write there. */
export function readArguments(given: unknown, named: string): Test {
  if (!isObject(given)) throw new ConfigError(`${named}: write conditions by the argument's name.`)
  const tests = Object.entries(given).map(([path, condition]): Test => {
    const place = `${named}.${path}`
    const names = path.split(/(?<!\\)\./).map((name) => name.replaceAll('\\.', '.'))
    if (names.includes(''))
      throw new ConfigError(`${place}: name an argument, or a part: to.address.`)
    const test = readCondition(condition, place)
    return (input) => test(names.reduce(partOf, input))
  })
  if (tests.length === 0) throw new ConfigError(`${named}: name an argument.`)
  return (input) => all(tests, input)
}

function readCondition(given: unknown, named: string): Test {
  if (!isObject(given)) throw new ConfigError(`${named}: write a condition: { equals: ... }.`)
  const tests = Object.entries(given).map(([name, value]): Test => {
    const place = `${named}.${name}`
    if (!Object.hasOwn(kinds, name))
      throw new ConfigError(`${place} is not known. Known: ${Object.keys(kinds).join(', ')}.`)
    const kind = kinds[name as keyof Condition]
    if (!kind.takes(value)) throw new ConfigError(`${place}: write ${kind.write}.`)
    const test = kind.make(value as never, place)
    return name === 'absent' ? test : (one) => (one === undefined ? 'unread' : test(one))
  })
  if (tests.length === 0) throw new ConfigError(`${named}: write a condition: { equals: ... }.`)
  return (value) => all(tests, value)
}

const all = (tests: readonly Test[], value: unknown): Reading =>
  together(tests.map((test) => test(value)))

/** One that does not hold decides; then one that cannot be read. */
function together(readings: readonly Reading[]): Reading {
  if (readings.includes('no')) return 'no'
  return readings.includes('unread') ? 'unread' : 'yes'
}

/** Own parts only: what an object inherits is nobody's argument. */
const partOf = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? (value as Record<string, unknown>)[name]
    : undefined

const judged = (fits: boolean | undefined): Reading =>
  fits === undefined ? 'unread' : fits ? 'yes' : 'no'

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const isText = (value: unknown): value is string => typeof value === 'string' && value !== ''
const isNumber = (value: unknown): value is number =>
  typeof value === 'number' && Number.isFinite(value)
const same = (a: unknown, b: unknown) => canonical(a) === canonical(b)

/** Of texts; anything else cannot be read. */
const ofText = (fits: (text: string, given: string) => boolean | undefined): Kind => ({
  write: 'a text that is not empty',
  takes: isText,
  make: (given: string) => (value) =>
    typeof value === 'string' ? judged(fits(value, given)) : 'unread',
})

/** A number in quotes is not a number: what reads it as one may not be what was shown. */
const ofNumber = (fits: (number: number, given: number) => boolean): Kind => ({
  write: 'a number',
  takes: isNumber,
  make: (given: number) => (value) => (isNumber(value) ? judged(fits(value, given)) : 'unread'),
})

const ofList = (join: (readings: Reading[]) => Reading): Kind => ({
  write: 'a condition for the elements',
  takes: isObject,
  make: (given: unknown, named) => {
    const test = readCondition(given, named)
    return (value) => (Array.isArray(value) ? join(value.map(test)) : 'unread')
  },
})

const kinds: Record<keyof Condition, Kind> = {
  equals: {
    write: 'the value',
    takes: (given) => given !== undefined,
    make: (given: unknown) => (value) => judged(same(value, given)),
  },
  oneOf: {
    write: 'a list of values',
    takes: (given) => Array.isArray(given) && given.length > 0,
    make: (given: unknown[]) => (value) => judged(given.some((one) => same(one, value))),
  },
  startsWith: ofText((text, given) => text.startsWith(given)),
  endsWith: ofText((text, given) => text.endsWith(given)),
  contains: {
    write: 'a part of the text, or an element of the list',
    takes: (given) => given !== undefined && given !== '',
    make: (given: unknown) => (value) => {
      if (Array.isArray(value)) return judged(value.some((one) => same(one, given)))
      if (typeof value !== 'string' || typeof given !== 'string') return 'unread'
      return judged(value.includes(given))
    },
  },
  matches: {
    write: 'a regular expression',
    takes: (given) => isText(given) || given instanceof RegExp,
    make: (given: string | RegExp, named) => {
      const found = patternAt(given, named)
      return (value) => (typeof value === 'string' ? judged(found(value)) : 'unread')
    },
  },
  over: ofNumber((number, given) => number > given),
  under: ofNumber((number, given) => number < given),
  absent: {
    write: 'true or false',
    takes: (given) => typeof given === 'boolean',
    make: (given: boolean) => (value) => judged((value === undefined) === given),
  },
  within: {
    ...ofText((text, given) => isWithin(text, given)),
    write: 'a folder: drafts, or /srv/drafts',
    takes: (given) => isText(given) && isWithin(given, given) === true,
  },
  host: {
    write: 'a host, or a list of hosts',
    takes: (given) => [given].flat().length > 0 && [given].flat().every(isText),
    make: (given: string | string[]) => (value) =>
      typeof value === 'string' ? judged(hasHost(value, [given].flat())) : 'unread',
  },
  every: ofList((readings) => (readings.length === 0 ? 'unread' : together(readings))),
  any: ofList((readings) => {
    if (readings.includes('yes')) return 'yes'
    return readings.includes('unread') ? 'unread' : 'no'
  }),
  at: {
    write: "conditions by the part's name",
    takes: isObject,
    make: (given: unknown, named) => {
      const test = readArguments(given, named)
      return (value) => (isObject(value) ? test(value) : 'unread')
    },
  },
}

function patternAt(given: string | RegExp, named: string) {
  try {
    return linearPattern(given)
  } catch (error) {
    throw new ConfigError(`${named}: ${(error as Error).message}`)
  }
}

function hasHost(text: string, hosts: readonly string[]): boolean | undefined {
  if (!URL.canParse(text)) return undefined
  const { protocol, hostname, username, password } = new URL(text)
  // Names before the host are there to be taken for it.
  if (!/^https?:$/.test(protocol) || username !== '' || password !== '') return undefined
  return hosts.some((host) => {
    const wanted = host.toLowerCase()
    return wanted.startsWith('*.') ? hostname.endsWith(wanted.slice(1)) : hostname === wanted
  })
}
