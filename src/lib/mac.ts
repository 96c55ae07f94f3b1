import { createHmac, hkdfSync } from 'node:crypto'

/** A key for one purpose, made of a secret that has many. */
export const derive = (secret: string | Buffer, purpose: string): Buffer =>
  Buffer.from(hkdfSync('sha256', secret, 'handrail', purpose, 32))

/** HMAC-SHA256, 43 characters. */
export const mac = (key: Buffer, text: string): string =>
  createHmac('sha256', key).update(text).digest('base64url')
