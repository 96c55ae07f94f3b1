import { timingSafeEqual } from 'node:crypto'
import { RuntimeError } from '../core/errors.ts'
import type { Route } from './http.ts'

const header = 'x-copilotcloud-public-api-key'

/** The same routes; if the operator set a public key, requests without it get 401 before their body is read. */
export function requirePublicKey(routes: readonly Route[], key: string | undefined): Route[] {
  if (key === undefined) return [...routes]
  return routes.map((one) => ({
    ...one,
    admit(request) {
      if (one.isPublic?.(request)) return
      checkKey(request, key)
    },
  }))
}

function checkKey(request: Request, expected: string): void {
  const given = Buffer.from(request.headers.get(header) ?? '')
  const wanted = Buffer.from(expected)
  if (given.length === wanted.length && timingSafeEqual(given, wanted)) return
  throw new RuntimeError('unauthenticated', `Send the public API key of this server (${header}).`)
}
