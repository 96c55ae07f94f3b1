import { createHmac, createSecretKey, type KeyObject } from 'node:crypto'

/** Made ready once: that is half of what a MAC with it would take. */
export type Key = KeyObject

/**
 * A key for one purpose, made of a secret that has many: HKDF (RFC 5869) with SHA-256, salt `handrail`.
 * Every thread has one; the half of it that only the secret decides is worked out once.
 */
export function derive(secret: string, purpose: string): Key {
  let extracted = extracts.get(secret)
  if (!extracted) {
    extracted = createSecretKey(createHmac('sha256', 'handrail').update(secret).digest())
    extracts.set(secret, extracted)
  }
  return createSecretKey(createHmac('sha256', extracted).update(`${purpose}\u0001`).digest())
}

/** Of the server's own secrets, which are a few. */
const extracts = new Map<string, Key>()

/** HMAC-SHA256, 43 characters. */
export const mac = (key: Key, text: string): string =>
  createHmac('sha256', key).update(text).digest('base64url')
