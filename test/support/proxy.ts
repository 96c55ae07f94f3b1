import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

/**
 * A wire between Postgres and us that can be cut where it hurts. A fault is for the next statement whose
 * text contains `when`; the connections before and after it work.
 */
export type Fault =
  /** The statement is done, and its answer is lost with the connection. */
  | { cut: 'answer'; when: string }
  /** The statement never arrives. */
  | { cut: 'question'; when: string }
  /** The connection is lost, and the statement arrives all the same, when `late` is called. */
  | { cut: 'delayed'; when: string }

export async function proxyTo(port: number) {
  let fault: Fault | undefined
  let deliver = () => {}
  let struck: () => void
  let strike = new Promise<void>((resolve) => {
    struck = resolve
  })
  const sockets = new Set<Socket>()

  const server = createServer((client) => {
    const upstream = connect(port, '127.0.0.1')
    let lost = false
    const lose = () => {
      lost = true
      client.destroy()
      struck()
    }
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => sockets.delete(socket))
    }
    let awaiting = false
    client.on('data', (chunk) => {
      if (fault && chunk.includes(fault.when)) {
        const { cut } = fault
        fault = undefined
        if (cut === 'answer') awaiting = true
        else lose()
        if (cut === 'question') return void upstream.destroy()
        if (cut === 'delayed') {
          deliver = () => void upstream.write(chunk)
          return
        }
      }
      upstream.write(chunk)
    })
    upstream.on('data', (chunk) => {
      if (awaiting) {
        awaiting = false
        lose()
        upstream.destroy()
      } else if (!lost) client.write(chunk)
    })
    client.on('close', () => {
      if (!lost) upstream.destroy()
    })
    upstream.on('close', () => client.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port: own } = server.address() as { port: number }

  return {
    url: `postgresql://app@127.0.0.1:${own}/postgres`,
    /** Resolves when the fault has happened. */
    arm(next: Fault): Promise<void> {
      fault = next
      strike = new Promise<void>((resolve) => {
        struck = resolve
      })
      return strike
    },
    /** Delivers what was held back. */
    late: () => deliver(),
    async close() {
      server.close()
      for (const socket of sockets) socket.destroy()
      await once(server, 'close')
    },
  }
}
