import { expect, test, vi } from 'vitest'

test('an error of another copy of the package is an instance of its class and of no other', async () => {
  const first = await import('./errors.ts')
  vi.resetModules()
  const second = await import('./errors.ts')
  expect(second.AgentError).not.toBe(first.AgentError)
  class OwnError extends first.RuntimeError {}
  const error = new second.AgentError('Name an account.')
  expect(error).toBeInstanceOf(first.AgentError)
  expect(error).toBeInstanceOf(first.RuntimeError)
  expect(error).not.toBeInstanceOf(OwnError)
  expect(new OwnError('internal')).toBeInstanceOf(second.RuntimeError)
  expect(new first.RuntimeError('internal')).not.toBeInstanceOf(second.AgentError)
})
