import { ownerWord } from './core/audience.ts'
import type { Caller } from './core/runtime.ts'
import { ConfigError } from './lib/config-error.ts'

const written = /^(.*)=(?:([\w.@-]+)\/)?([\w.@-]+)(?::(\w{1,100}(?:\+\w{1,100})*))?$/

/** `key=user` or `key=tenant/user` or `key=tenant/user:role+role`, separated by commas. */
export function readApiKeys(text: string): Map<string, Omit<Caller, 'wire'>> {
  const keys = new Map<string, Omit<Caller, 'wire'>>()
  for (const part of text.split(',').map((one) => one.trim())) {
    if (part === '') continue
    const match = written.exec(part)
    if (!match) throw refused('write key=user or key=tenant/user:role, separated by commas.')
    const [, key = '', tenant = 'default', user, roles = 'user'] = match
    // What is wrong with a key is said of its user: the key itself is nobody's to read.
    if (!/^[\w.~-]{16,}$/.test(key))
      throw refused(
        `the key of ${user} must have 16 characters or more, all of them letters, digits or one of . _ ~ -`,
      )
    if (keys.has(key))
      throw refused(
        `${keys.get(key)!.user} and ${user} have the same key. Give each one of its own.`,
      )
    if (roles.split('+').includes(ownerWord))
      throw refused('no role can be called owner: that is whose chat it is.')
    keys.set(key, { tenant, user: user!, roles: roles.split('+') })
  }
  return keys
}

const refused = (why: string) => new ConfigError(`HANDRAIL_API_KEYS: ${why}`)
