import type { Notice } from '../core/outbox.ts'
import { payloadOf } from './payload.ts'
import { keyFrom, signatureOf } from './signature.ts'

export interface WebhookOptions {
  url: string
  /** `whsec_` and base64, or any text. */
  secret: string
  /** Where people reach this server, for links. */
  publicUrl?: string
  /** Milliseconds that the endpoint has to take a notice. */
  timeout?: number
  now: () => number
}

/** Posts notices to one address and to no other: a redirect is a refusal. What it answers is not read. */
export function webhook({ url, secret, publicUrl, timeout = 10_000, now }: WebhookOptions) {
  const key = keyFrom(secret)
  return async (notice: Notice, signal: AbortSignal): Promise<void> => {
    const body = JSON.stringify(payloadOf(notice, publicUrl))
    const sentAt = String(Math.floor(now() / 1_000))
    const response = await fetch(url, {
      method: 'POST',
      body,
      redirect: 'manual',
      signal: AbortSignal.any([signal, AbortSignal.timeout(timeout)]),
      headers: {
        'content-type': 'application/json',
        'user-agent': 'handrail',
        'webhook-id': notice.id,
        'webhook-timestamp': sentAt,
        'webhook-signature': signatureOf(key, notice.id, sentAt, body),
      },
    })
    await response.body?.cancel().catch(() => {})
    if (!response.ok) throw new Error(`the endpoint answered ${response.status}`)
  }
}
