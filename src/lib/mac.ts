import { createHmac, createSecretKey, hkdfSync, type KeyObject } from 'node:crypto'

/** Made ready once: that is half of what a MAC with it would take. */
export type Key = KeyObject

/** A key for one purpose, made of a secret that has many. */
export const derive = (secret: string, purpose: string): Key =>
  createSecretKey(Buffer.from(hkdfSync('sha256', secret, 'handrail', purpose, 32)))

/** HMAC-SHA256, 43 characters. */
export const mac = (key: Key, text: string): string =>
  createHmac('sha256', key).update(text).digest('base64url')
