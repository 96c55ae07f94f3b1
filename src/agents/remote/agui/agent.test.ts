import { expect, test, vi } from 'vitest'
import { aguiAgent } from './agent.ts'

const loaded = vi.hoisted(() => ({ count: 0 }))

vi.mock('@ag-ui/client', () => {
  loaded.count++
  return { HttpAgent: class {} }
})

test('the AG-UI client is loaded when an agent is configured, before its first run', async () => {
  expect(loaded.count).toBe(0)
  aguiAgent({ name: 'remote', url: 'http://127.0.0.1:1/' })
  await vi.waitFor(() => expect(loaded.count).toBe(1))
  aguiAgent({ name: 'other', url: 'http://127.0.0.1:2/' })
  expect(loaded.count).toBe(1)
})
