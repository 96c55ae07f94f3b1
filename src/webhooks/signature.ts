import { createHmac } from 'node:crypto'

/** The scheme of standardwebhooks.com: whoever knows the secret can tell our notices from others'. */
export const signatureOf = (key: Buffer, id: string, timestamp: string, body: string): string =>
  `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`

export const keyFrom = (secret: string): Buffer =>
  secret.startsWith('whsec_')
    ? Buffer.from(secret.slice('whsec_'.length), 'base64')
    : Buffer.from(secret)
