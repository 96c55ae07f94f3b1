import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { egress, isPrivate, isPrivateName } from './egress.ts'

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
