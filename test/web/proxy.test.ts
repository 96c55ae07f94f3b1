import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { freePort, type PageServer, startPage } from './page-server.ts'

type Answer = (request: IncomingMessage, response: ServerResponse) => void | Promise<void>

/** A runtime that does as the test says, and remembers what it was asked. */
let answer: Answer = (_request, response) => void response.end()
const asked: IncomingMessage[] = []
const upstream = createServer((request, response) => {
  asked.push(request)
  void answer(request, response)
})
let page: PageServer
beforeAll(async () => {
  await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve))
  page = await startPage(`http://127.0.0.1:${(upstream.address() as AddressInfo).port}`)
})
afterAll(async () => {
  await page?.close()
  upstream.closeAllConnections()
  upstream.close()
})

const at = (path: string) => `${page.url}/api/copilotkit${path}`

/** A request whose path is sent as it is written; `fetch` would tidy it up. */
function raw(path: string, headers: Record<string, string> = {}, method = 'GET', to = page) {
  return new Promise<{ status: number; body: string }>((resolve, reject) => {
    const { hostname, port } = new URL(to.url)
    const sent = request({ hostname, port, path, method, headers }, (response) => {
      let body = ''
      response.on('data', (chunk) => (body += chunk))
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body }))
    })
    sent.once('error', reject)
    sent.end()
  })
}

const memory = () => {
  const status = readFileSync(`/proc/${page.child.pid}/status`, 'utf8')
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1_024
}

describe('what passes', () => {
  test.each([
    ['/info', '/copilotkit/info'],
    ['/threads?limit=2&search=a+b', '/copilotkit/threads?limit=2&search=a+b'],
    ['/threads/a%2Fb/outline', '/copilotkit/threads/a%2Fb/outline'],
    ['/threads/t/governor', '/threads/t/governor'],
    ['/agent/default/run', '/copilotkit/agent/default/run'],
    ['/chats/c/interactions', '/chats/c/interactions'],
    ['/approvals/stream', '/approvals/stream'],
  ])('%s is %s there', async (from, to) => {
    answer = (_request, response) => void response.end('{}')
    await fetch(at(from))
    expect(asked.at(-1)?.url).toBe(to)
  })

  test('method, body, status and the headers that are meant for the other side', async () => {
    answer = async (request, response) => {
      let body = ''
      for await (const chunk of request) body += chunk
      response.writeHead(201, {
        'content-type': 'application/json',
        'retry-after': '7',
        'x-interaction-id': 'run_1',
        'set-cookie': 'a=b',
        server: 'secret',
      })
      response.end(JSON.stringify({ body, method: request.method }))
    }
    const response = await fetch(at('/threads/t'), {
      method: 'PATCH',
      headers: {
        'content-type': 'application/json',
        authorization: 'Bearer k',
        'idempotency-key': 'once',
        'last-event-id': '7.1.2',
        cookie: 'session=1',
        'x-forwarded-for': '1.2.3.4',
      },
      body: '{"name":"é"}',
    })
    expect(response.status).toBe(201)
    expect(await response.json()).toEqual({ body: '{"name":"é"}', method: 'PATCH' })
    expect(response.headers.get('retry-after')).toBe('7')
    expect(response.headers.get('x-interaction-id')).toBe('run_1')
    expect(response.headers.get('set-cookie')).toBeNull()
    expect(response.headers.get('cache-control')).toBe('no-store, no-transform')
    expect(response.headers.get('x-content-type-options')).toBe('nosniff')
    const { headers } = asked.at(-1)!
    expect(headers).toMatchObject({
      ...{ authorization: 'Bearer k', 'idempotency-key': 'once', 'last-event-id': '7.1.2' },
      ...{ 'content-type': 'application/json', 'accept-encoding': 'identity' },
    })
    expect(headers.cookie).toBeUndefined()
    expect(headers['x-forwarded-for']).toBeUndefined()
  })

  test('HANDRAIL_PUBLIC_API_KEY is sent with every request', async () => {
    answer = (_request, response) => void response.end('{}')
    const { port } = upstream.address() as AddressInfo
    const keyed = await startPage(`http://127.0.0.1:${port}`, { HANDRAIL_PUBLIC_API_KEY: 'ck_pub' })
    onTestFinished(() => keyed.close())
    await fetch(`${keyed.url}/api/copilotkit/info`)
    expect(asked.at(-1)?.headers['x-copilotcloud-public-api-key']).toBe('ck_pub')
  })

  test('an error of the runtime, as it is; one of somebody else, in our form', async () => {
    answer = (_request, response) => {
      response.writeHead(409, { 'content-type': 'application/json' })
      response.end('{"error":"thread_busy","message":"Busy."}')
    }
    const own = await fetch(at('/threads/t'))
    expect([own.status, await own.json()]).toEqual([
      409,
      { error: 'thread_busy', message: 'Busy.' },
    ])
    answer = (_request, response) => {
      response.writeHead(503, { 'content-type': 'text/html' })
      response.end('<h1>Away</h1>')
    }
    const other = await fetch(at('/threads/t'))
    expect([other.status, await other.json()]).toMatchObject([503, { details: '<h1>Away</h1>' }])
  })
})

describe('what does not', () => {
  test.each([
    ['/api/copilotkit/metrics', 404],
    ['/api/copilotkit/copilotkit/info', 404],
    ['/api/copilotkit/threads/..%2f..%2fmetrics', 400],
    ['/api/copilotkit/threads/%2e%2e%2fmetrics', 400],
    ['/api/copilotkit/threads/%252e%252e%252fmetrics', 400],
    ['/api/copilotkit/chats/..%5c..%5cmetrics', 400],
    ['/api/copilotkit/http:%2f%2fexample.com%2finfo', 404],
    ['/api/copilotkit/@example.com/info', 404],
  ])('%s', async (path, status) => {
    const before = asked.length
    expect((await raw(path)).status).toBe(status)
    expect(asked.length).toBe(before)
  })

  test('nothing that climbs or names another host reaches anything but the runtime', async () => {
    answer = (_request, response) => void response.end('{}')
    for (const path of [
      '/api/copilotkit/../../metrics',
      '/api/copilotkit/threads/../../metrics',
      '//example.com/api/copilotkit/info',
      '/api/copilotkit//example.com/info',
    ]) {
      const before = asked.length
      await raw(path)
      const reached = asked.slice(before).map(({ url }) => url ?? '')
      expect(reached.filter((url) => !url.startsWith('/copilotkit/'))).toEqual([])
    }
  })

  test('another method', async () => {
    const { status, body } = await raw('/api/copilotkit/info', {}, 'OPTIONS')
    expect([status, JSON.parse(body)]).toMatchObject([
      405,
      { allowed: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] },
    ])
  })

  test('a page of another origin, and a name that merely points here', async () => {
    const before = asked.length
    expect((await raw('/api/copilotkit/info', { origin: 'https://example.com' })).status).toBe(403)
    expect((await raw('/api/copilotkit/info', { host: 'example.com' })).status).toBe(403)
    expect(asked.length).toBe(before)
  })

  test('a POST with Sec-Fetch-Site: cross-site and without an Origin is refused', async () => {
    const before = asked.length
    const headers = { 'sec-fetch-site': 'cross-site' }
    expect((await raw('/api/copilotkit/chats', headers, 'POST')).status).toBe(403)
    expect(asked.length).toBe(before)
  })

  test('a Host that is not in WEB_ALLOWED_HOSTS is refused, also when WEB_HOST is set', async () => {
    answer = (_request, response) => void response.end('{}')
    const { port } = upstream.address() as AddressInfo
    const open = await startPage(`http://127.0.0.1:${port}`, {
      WEB_HOST: '0.0.0.0',
      WEB_ALLOWED_HOSTS: 'agents.example.org, Other.example.org',
    })
    onTestFinished(() => open.close())
    const status = async (host: string) =>
      (await raw('/api/copilotkit/info', { host }, 'GET', open)).status
    const before = asked.length
    for (const host of ['evil.example', 'evil.example:3000', 'agents.example.org.evil.example'])
      expect([host, await status(host)]).toEqual([host, 403])
    expect(asked.length).toBe(before)
    for (const host of [
      ...['localhost:3000', '127.0.0.1', '[::1]:3000', '192.168.1.5:3000', '[fd00::1]:3000'],
      ...['agents.example.org', 'AGENTS.example.org:3000', 'other.example.org.'],
    ])
      expect([host, await status(host)]).toEqual([host, 200])
  })

  test('without a runtime it says so', async () => {
    const lost = await startPage(`http://127.0.0.1:${await freePort()}`)
    onTestFinished(() => lost.close())
    const response = await fetch(`${lost.url}/api/copilotkit/info`)
    expect([response.status, await response.json()]).toMatchObject([
      502,
      { reason: expect.stringContaining('cannot be reached') },
    ])
  })

  test('with a target that is none it says that the request failed', async () => {
    const wrong = await startPage('nowhere')
    onTestFinished(() => wrong.close())
    const response = await fetch(`${wrong.url}/api/copilotkit/info`)
    expect([response.status, await response.json()]).toMatchObject([
      500,
      { error: 'Proxy request failed', message: expect.any(String) },
    ])
  })
})

describe('streams', () => {
  test('come piece by piece, comments too, and are not compressed', async () => {
    let finish = () => {}
    answer = (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write(': keep-alive\n\n')
      finish = () => void response.end('data: two\n\n')
    }
    const response = await fetch(at('/threads/t/watch'), { headers: { 'accept-encoding': 'gzip' } })
    expect(response.headers.get('content-encoding')).toBeNull()
    const reader = response.body!.getReader()
    const next = async () => Buffer.from((await reader.read()).value ?? []).toString()
    expect(await next()).toBe(': keep-alive\n\n') // the other side has sent no more yet
    finish()
    expect(await next()).toBe('data: two\n\n')
    expect((await reader.read()).done).toBe(true)
  })

  test('that the reader leaves are left on the other side within a second', async () => {
    let left: Promise<number> | undefined
    answer = (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write('data: one\n\n')
      left = new Promise((resolve) => response.once('close', () => resolve(Date.now())))
    }
    const controller = new AbortController()
    const response = await fetch(at('/threads/t/watch'), { signal: controller.signal })
    await response.body!.getReader().read()
    const began = Date.now()
    controller.abort()
    expect((await left!) - began).toBeLessThan(1_000)
  })

  test('that the other side breaks off are broken off here, not ended as if they were whole', async () => {
    answer = (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write('data: one\n\n')
      setTimeout(() => response.destroy(), 50)
    }
    const response = await fetch(at('/threads/t/watch'))
    await expect(response.text()).rejects.toThrow()
  })

  const size = 50 * 1_024 * 1_024
  const chunk = Buffer.alloc(64 * 1_024, 'x')

  test('of 50 MB cost no memory, however slow the reader is', async () => {
    let sent = 0
    answer = async (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      for (sent = 0; sent < size; sent += chunk.length)
        if (!response.write(chunk)) await new Promise((resolve) => response.once('drain', resolve))
      response.end()
    }
    await fetch(at('/info')).then((one) => one.arrayBuffer()) // warm
    const before = memory()
    const response = await fetch(at('/threads/t/watch'))
    const reader = response.body!.getReader()
    await reader.read()
    await sleep(1_500)
    expect(sent).toBeLessThan(size / 2) // who does not read holds the other side up
    let peak = 0
    for (let done = false; !done; ) {
      done = (await reader.read()).done
      peak = Math.max(peak, memory() - before)
    }
    expect(sent).toBe(size)
    expect(peak).toBeLessThan(64)
  })

  test('of 50 MB pass in the other direction as well', async () => {
    let received = 0
    answer = async (request, response) => {
      for await (const piece of request) received += (piece as Buffer).length
      response.end('{}')
    }
    const before = memory()
    let left = size / chunk.length
    const body = new ReadableStream<Uint8Array>({
      pull: (out) => (left-- > 0 ? out.enqueue(chunk) : out.close()),
    })
    const init: RequestInit & { duplex: 'half' } = {
      ...{ method: 'POST', body, duplex: 'half' },
      headers: { 'content-type': 'application/json' },
    }
    await fetch(at('/chats/c/interactions'), init)
    expect(received).toBe(size)
    expect(memory() - before).toBeLessThan(64)
  })
})
