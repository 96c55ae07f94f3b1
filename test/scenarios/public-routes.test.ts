import { expect, test, vi } from 'vitest'
import * as page from '../../src/wires/ops/docs-page.ts'
import * as document from '../../src/wires/ops/openapi.ts'
import { serve } from '../support/serve.ts'

vi.mock('../../src/wires/ops/docs-page.ts', { spy: true })
vi.mock('../../src/wires/ops/openapi.ts', { spy: true })

test('GET /readyz queries the store at most once a second, in parallel and repeated', async () => {
  const server = await serve({ builtIns: false })
  const { store } = server.server
  const probe = vi.spyOn(store, 'probe')
  const work = vi.spyOn(store, 'work')
  const since = Date.now()
  const get = async () => (await server.request('GET', '/readyz')).status
  const statuses = await Promise.all(Array.from({ length: 100 }, get))
  for (let n = 0; n < 100; n++) statuses.push(await get())
  expect(new Set(statuses)).toEqual(new Set([200]))
  const seconds = Math.ceil((Date.now() - since) / 1_000)
  const readiness = work.mock.calls.filter(([limit]) => limit === 1)
  expect(probe.mock.calls.length).toBeGreaterThan(0)
  expect(probe.mock.calls.length).toBeLessThanOrEqual(seconds)
  expect(readiness.length).toBeLessThanOrEqual(seconds)
})

test('GET /docs and GET /openapi.json generate the document and the page once', async () => {
  const server = await serve({ builtIns: false })
  const get = async (path: string) => await (await server.request('GET', path)).text()
  const paths = Array.from({ length: 20 }, (_, n) => (n % 2 ? '/docs' : '/openapi.json'))
  const bodies = await Promise.all(paths.map(get))
  for (const path of paths) bodies.push(await get(path))
  expect(new Set(bodies).size).toBe(2)
  expect(vi.mocked(document.openApi)).toHaveBeenCalledTimes(1)
  expect(vi.mocked(page.docsPage)).toHaveBeenCalledTimes(1)
})
