import { once } from 'node:events'
import { connect } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { listen } from './listen.ts'

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
