import { once } from 'node:events'
import { connect } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { listen } from './listen.ts'
import { jsonText } from './wires/http.ts'

test('requests that come together are taken in a few at a time', async () => {
  let turn = 0
  let counting = true
  const count = () => {
    turn++
    if (counting) setImmediate(count)
  }
  const perTurn = new Map<number, number>()
  const fetch = async () => {
    perTurn.set(turn, (perTurn.get(turn) ?? 0) + 1)
    return new Response('ok')
  }
  const listener = await listen(fetch, { port: 0, host: '127.0.0.1' })
  const sockets = Array.from({ length: 64 }, () => connect(listener.port, '127.0.0.1'))
  onTestFinished(() => {
    counting = false
    for (const socket of sockets) socket.destroy()
    listener.close()
  })
  const askAll = async () => {
    const answered = sockets.map((socket) => once(socket, 'data'))
    for (const socket of sockets) socket.write('GET / HTTP/1.1\r\nhost: localhost\r\n\r\n')
    for (const [data] of await Promise.all(answered)) expect(String(data)).toContain('200 OK')
  }
  await askAll() // connections are taken in one by one anyway
  perTurn.clear()
  setImmediate(count)
  await askAll()
  expect(Math.max(...perTurn.values())).toBeLessThanOrEqual(5)
})

test('a port that is taken, and an address that is none, are named', async () => {
  const fetch = async () => new Response('ok')
  const first = await listen(fetch, { port: 0, host: '127.0.0.1' })
  onTestFinished(() => first.close())
  const { port } = first
  await expect(listen(fetch, { port, host: '127.0.0.1' })).rejects.toThrow(
    `PORT: ${port} is taken by another program. Set PORT to a free one.`,
  )
  await expect(listen(fetch, { port: 0, host: '192.0.2.1' })).rejects.toThrow(
    /^HOST: 192.0.2.1 is no/,
  )
})

test('a stopping server sends long JSON with its length, so that clients notice a body that breaks off', async () => {
  const fetch = async () => jsonText(pieces('[1', ',2', ',3]'))
  const listener = await listen(fetch, { port: 0, host: '127.0.0.1' })
  onTestFinished(() => listener.close())
  const get = () => globalThis.fetch(`http://127.0.0.1:${listener.port}/`)
  const before = await get()
  expect(before.headers.get('content-length')).toBeNull()
  expect(await before.json()).toEqual([1, 2, 3])
  listener.leave()
  const after = await get()
  expect(after.headers.get('connection')).toBe('close')
  expect(after.headers.get('content-length')).toBe('7')
  expect(await after.json()).toEqual([1, 2, 3])
})

test.each([false, true])(
  'a body that fails is not sent as complete (stopping: %s)',
  async (stopping) => {
    async function* failing() {
      yield '[1'
      throw new Error('the store is gone')
    }
    const fetch = async () => {
      const response = jsonText(failing())
      response.headers.set('x-content-type-options', 'nosniff')
      return response
    }
    const listener = await listen(fetch, { port: 0, host: '127.0.0.1' })
    onTestFinished(() => listener.close())
    if (stopping) listener.leave()
    const get = async () => {
      const response = await globalThis.fetch(`http://127.0.0.1:${listener.port}/`)
      return response.ok
        ? await response.text()
        : Promise.reject(new Error(String(response.status)))
    }
    await expect(get()).rejects.toThrow()
  },
)

async function* pieces(...texts: string[]) {
  for (const text of texts) {
    await nextTurn()
    yield text
  }
}
