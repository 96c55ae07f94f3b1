import { isSecret, textsIn, withoutSecrets } from './secrets.ts'

/** Other values of headers may be tokens too. Shorter ones are words, such as the name of a tenant. */
const minOther = 12

/** Headers that describe a request, and hold no secret. */
const describes = /^(?:accept|content)\b|^user-agent$/i

/**
 * Returns the texts that errors of another server must not repeat: the values of the `headers` that it gets, and the secrets in the other
 * `settings` of the connection, such as an address with a token. A text after a scheme (`Bearer abc`) is also returned alone.
 */
export function connectionSecrets(
  headers: Readonly<Record<string, unknown>> = {},
  settings: unknown = undefined,
): readonly string[] {
  const found: { path: readonly (string | number)[]; value: unknown }[] = []
  withoutSecrets({ settings }, [], found)
  const values = Object.entries(headers).flatMap(([name, value]) => {
    if (typeof value !== 'string') return []
    const isOther = value.length >= minOther && !describes.test(name)
    return isOther || isSecret(name, value) ? [value] : []
  })
  return [...found.map(({ value }) => value), ...values].flatMap(textsIn)
}
