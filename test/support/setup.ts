import fc from 'fast-check'
import { vi } from 'vitest'

// What a test waits for comes late on a busy machine: that alone is no defect.
const { waitFor, waitUntil } = vi
const timeout = 20_000
vi.waitFor = (check, options = {}) =>
  waitFor(check, typeof options === 'number' ? options : { timeout, ...options })
vi.waitUntil = (check, options = {}) =>
  waitUntil(check, typeof options === 'number' ? options : { timeout, ...options })

// Always the same in CI; `HANDRAIL_SEED=random` looks elsewhere.
const { HANDRAIL_SEED: asked = '2026' } = process.env
if (asked !== 'random') fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: Number(asked) })
