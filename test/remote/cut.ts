import type { AddressInfo } from 'node:net'
import { connect, createServer, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'

/**
 * A wire to a server that can be cut: every connection on it is lost, the next ones work. Or the next
 * ones are lost too, as soon as something is said on them.
 */
export async function wireTo(url: string) {
  const { port } = new URL(url)
  const sockets = new Set<Socket>()
  let doomed = 0
  const server = createServer((client) => {
    if (doomed > 0) {
      doomed -= 1
      client.on('error', () => {})
      client.once('data', () => client.destroy())
      return
    }
    const upstream = connect(Number(port), '127.0.0.1')
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => {
        sockets.delete(socket)
        client.destroy()
        upstream.destroy()
      })
    }
    client.pipe(upstream).pipe(client)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const cut = () => {
    for (const socket of sockets) socket.destroy()
  }
  onTestFinished(() => {
    cut()
    server.close()
  })
  const cutNext = (connections: number) => {
    doomed = connections
  }
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, cut, cutNext }
}
