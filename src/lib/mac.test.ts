import { hkdfSync } from 'node:crypto'
import { expect, test } from 'vitest'
import { derive } from './mac.ts'

test('derives the keys that HKDF-SHA256 does, for every secret and purpose', () => {
  for (const secret of ['s', 'a much longer secret than a block of the hash, '.repeat(4), 'zwölf'])
    for (const purpose of ['heads', 'thread abc', 'ünï'])
      for (let again = 0; again < 2; again++)
        expect(derive(secret, purpose).export()).toEqual(
          Buffer.from(hkdfSync('sha256', secret, 'handrail', purpose, 32)),
        )
})
