import { hash } from 'node:crypto'

/** JSON with sorted keys: equal values give equal text. Rejects what JSON cannot hold. */
export function canonical(value: unknown): string {
  return JSON.stringify(value, (_key, part: unknown) => {
    if (typeof part !== 'object' || part === null || Array.isArray(part)) return part
    const sorted: Record<string, unknown> = Object.create(null)
    for (const key of Object.keys(part).sort()) sorted[key] = (part as never)[key]
    return sorted
  })
}

export function sha256(text: string): string {
  return hash('sha256', text)
}

const digests = new WeakMap<object, string>()

/** The digest of an object that nobody changes any more, worked out once. */
export function digestOnce(value: object): string {
  let digest = digests.get(value)
  if (digest === undefined) {
    digest = digestOf(value)
    digests.set(value, digest)
  }
  return digest
}

export function digestOf(value: unknown): string {
  return sha256(canonical(value) ?? 'undefined')
}
