import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Worker } from 'node:worker_threads'
import { describe, expect, onTestFinished, test } from 'vitest'
import { egress, isPrivate, isPrivateName, refusalOf } from './egress.ts'

const patience = { connect: 1_000, silence: 1_000 }

async function listening(answer: RequestListener): Promise<URL> {
  const server = createServer(answer)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
}

describe('the way out', () => {
  test('reaches the configured origin, and follows it within itself', async () => {
    const base = await listening((request, response) => {
      if (request.url === '/old') response.writeHead(308, { location: '/new' }).end()
      else request.pipe(response)
    })
    const fetch = egress(base, patience)
    const response = await fetch(new URL('/old', base), { method: 'POST', body: 'hello' })
    expect(await response.text()).toBe('hello')
  })

  test('reaches no other origin, by itself or by a redirect', async () => {
    const other = await listening((_, response) => response.end('secret'))
    const base = await listening((_, response) =>
      response.writeHead(307, { location: other.href }).end(),
    )
    const fetch = egress(base, patience)
    await expect(fetch(other)).rejects.toMatchObject({ code: 'remote_refused' })
    await expect(fetch(base)).rejects.toMatchObject({ code: 'remote_refused' })
  })

  test('a process that was blocked for longer than the silence limit reads what the remote has sent meanwhile', async () => {
    const script = `
      const { parentPort } = require('node:worker_threads')
      const server = require('node:http').createServer((_, response) => {
        response.write('first ')
        setTimeout(() => response.end('second'), 300)
      })
      server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port))
    `
    const worker = new Worker(script, { eval: true })
    onTestFinished(async () => void (await worker.terminate()))
    const [port] = await once(worker, 'message')
    const base = new URL(`http://127.0.0.1:${port}/`)
    const response = await egress(base, { connect: 1_000, silence: 600 })(base)
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
    expect(await reader.read()).toMatchObject({ value: 'first ' })
    const next = reader.read()
    await new Promise((resolve) => setImmediate(resolve)) // timers fire next, before sockets are read
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_200)
    expect(await next).toMatchObject({ value: 'second' })
  })

  test('does not reach a private address behind a public name', async () => {
    const base = await listening((_, response) => response.end('inside'))
    // A name that means this machine wherever it is asked for.
    const named = new URL(`http://localhost:${base.port}/`)
    const open = egress(named, patience)
    expect(await (await open(named)).text()).toBe('inside')
    const closed = egress(named, patience, false)
    await expect(closed(named)).rejects.toMatchObject({ code: 'remote_refused' })
    expect(() => egress(base, patience, false)).toThrow('private')
  })

  test.each([
    ...['10.1.2.3', '127.0.0.1', '169.254.169.254', '172.16.0.1', '192.168.1.1', '100.64.0.1'],
    ...['0.0.0.0', '::1', '::', 'fd00::1', 'fe80::1', '::ffff:10.0.0.1', '224.0.0.1'],
    ...['192.0.2.1', '198.51.100.1', '203.0.113.1', '192.88.99.1', '198.18.0.1', '255.255.255.255'],
    // Mapped, compatible and translated: the private IPv4 address is inside.
    ...['::ffff:a00:1', '0:0:0:0:0:ffff:7f00:1', '::10.0.0.1', '::ffff:0:10.0.0.1'],
    ...['64:ff9b::10.0.0.1', '64:ff9b:1::1', '64:ff9b:1:ffff::a00:1'],
    ...['2002:a00:1::', '2002:7f00:1::1', '2001::1', '2001:0:53aa:64c:0:7ffe:f5ff:fffe'],
    ...['2001:db8::1', '3fff::1', '3fff:fff::1', 'fec0::1', 'feff::1', 'fe80::1%eth0'],
    ...[
      '100::1',
      '2001:10::1',
      '2001:20::1',
      '2001:2::1',
      'ff02::1',
      'fc00::1',
      '5f00::1',
      '4000::1',
    ],
  ])('%s is private', (address) => {
    expect(isPrivate(address)).toBe(true)
  })

  test.each([
    ...['1.1.1.1', '93.184.216.34', '2606:4700::1111', '2a00:1450:4001::1'],
    ...['2001:4860:4860::8888', '2400:cb00::1', '::ffff:8.8.8.8', '::ffff:808:808', '3ffe::1'],
  ])('%s is not', (address) => {
    expect(isPrivate(address)).toBe(false)
  })

  test('names that can only be ours are known by their looks', () => {
    const ours = ['localhost', 'agents', 'a.local', 'x.svc.cluster.local', '[::1]', '10.0.0.1']
    expect(ours.filter((name) => !isPrivateName(name))).toEqual([])
    expect(['example.com', '8.8.8.8', 'local.example'].filter(isPrivateName)).toEqual([])
  })

  test.each([
    ['301 within the origin', 301, '/new', 'remote_protocol'],
    ['302 within the origin', 302, '/new', 'remote_protocol'],
    ['303 within the origin', 303, '/new', 'remote_protocol'],
    ['307 to another origin', 307, 'http://127.0.0.1:1/', 'remote_refused'],
    ['308 to another origin', 308, 'http://127.0.0.1:1/', 'remote_refused'],
    ['303 to another origin', 303, 'http://127.0.0.1:1/', 'remote_refused'],
    ['307 without end', 307, '/', 'remote_protocol'],
    ['307 to what is no address', 307, 'http://[', 'remote_protocol'],
    ['302 without a location', 302, undefined, 'remote_protocol'],
    ['300', 300, undefined, 'remote_protocol'],
  ])(
    'a POST that was delivered and is answered with status %s has an unknown outcome (I4)',
    async (_, status, location, code) => {
      let delivered = 0
      const base = await listening((_, response) => {
        delivered++
        response.writeHead(status, location === undefined ? {} : { location }).end()
      })
      const error = await egress(base, patience)(base, { method: 'POST' }).catch((one) => one)
      expect(delivered).toBeGreaterThan(0)
      expect(error).toMatchObject({ code: 'remote_outcome_unknown', retryable: false })
      expect(error.message).toContain(String(status))
      expect(refusalOf(error)).toMatchObject({ code })
    },
  )

  test('a POST to another origin than the configured one is refused before it is sent', async () => {
    const base = await listening((_, response) => response.end())
    const sent = egress(base, patience)('http://127.0.0.1:1/', { method: 'POST' })
    await expect(sent).rejects.toMatchObject({ code: 'remote_refused' })
  })

  test('a GET that is redirected without end is a protocol error', async () => {
    const base = await listening((_, response) => response.writeHead(302, { location: '/' }).end())
    await expect(egress(base, patience)(base)).rejects.toMatchObject({ code: 'remote_protocol' })
  })

  test('says when a body is cut, and when it stops', async () => {
    const base = await listening((request, response) => {
      response.write('half')
      if (request.url === '/cut') setTimeout(() => response.destroy(), 50)
    })
    const fetch = egress(base, { connect: 1_000, silence: 300 })
    const cut = await fetch(new URL('/cut', base))
    await expect(cut.text()).rejects.toMatchObject({ code: 'remote_cut' })
    const silent = await fetch(new URL('/silent', base))
    await expect(silent.text()).rejects.toMatchObject({ code: 'remote_timeout' })
  })
})
