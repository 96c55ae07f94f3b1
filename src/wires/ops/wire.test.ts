import { expect, test } from 'vitest'
import type { Runtime } from '../../core/runtime.ts'
import { opsWire } from './wire.ts'

test('the warm-up makes the API documents once, and requests for them make nothing', async () => {
  let made = 0
  const routes = opsWire(
    {} as Runtime,
    () => {
      made++
      return routes
    },
    '1.0.0',
  )
  for (const { warmUp } of routes) await warmUp?.()
  expect(made).toBe(1)
  for (const path of ['/openapi.json', '/docs']) {
    const route = routes.find((one) => one.path === path)!
    const request = new Request(`http://localhost${path}`)
    const caller = { tenant: '', user: '', roles: [], wire: 'http' }
    const call = { params: {}, query: {}, body: undefined, caller, request }
    expect((await route.handle(call)).status).toBe(200)
  }
  expect(made).toBe(1)
})
