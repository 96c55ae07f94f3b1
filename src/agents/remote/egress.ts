import { lookup } from 'node:dns'
import { Agent as HttpAgent, type IncomingMessage, request as plain } from 'node:http'
import { request as encrypted, Agent as HttpsAgent } from 'node:https'
import { BlockList, isIP, type LookupFunction } from 'node:net'
import { Readable } from 'node:stream'
import { isRuntimeError, RuntimeError } from '../../core/errors.ts'

/** Milliseconds to connect, and without a byte once it is. */
export interface Patience {
  connect: number
  silence: number
}

/** `fetch` that reaches one origin and nothing else. */
export type Egress = (url: string | URL, init?: RequestInit) => Promise<Response>

const redirectLimit = 3

/**
 * A way out to the configured address: no other origin, also not by redirects, and no private address
 * behind a public name. Rejects with `remote_*` errors; a body that is cut errors with one. If a redirect
 * of a request other than GET or HEAD is not followed, rejects with `remote_outcome_unknown`; see `refusalOf`.
 */
export function egress(
  base: URL,
  { connect, silence }: Patience,
  allowPrivate = isPrivateName(base.hostname),
): Egress {
  // A connection for each request: one that was kept may be gone, and then nobody knows what got through.
  const options = { keepAlive: false, lookup: allowPrivate ? lookup : publicOnly }
  const agent = base.protocol === 'https:' ? new HttpsAgent(options) : new HttpAgent(options)
  if (isIP(bare(base.hostname)) && !allowPrivate && isPrivate(bare(base.hostname)))
    throw new RuntimeError('remote_refused', notPublic)

  /** `sentBefore`: another address of the remote has got the request already. */
  const once = (url: URL, init: RequestInit, sentBefore: boolean) =>
    new Promise<IncomingMessage>((resolve, reject) => {
      const send = url.protocol === 'https:' ? encrypted : plain
      const { method = 'GET', signal } = init
      const headers = { ...headersOf(init.headers), 'accept-encoding': 'identity' }
      signal?.throwIfAborted()
      const sent = send(url, { method, headers, agent })
      // Not by the request's own option: it throws where nobody listens once the answer has begun.
      const leave = () => sent.destroy()
      signal?.addEventListener('abort', leave, { once: true })
      const stop = (code: 'remote_unavailable' | 'remote_cut' | 'remote_timeout', told: string) =>
        sent.destroy(new RuntimeError(code, told))
      const unreached = sentBefore ? 'remote_cut' : 'remote_unavailable'
      const late = setTimeout(
        () => stop(unreached, 'The remote agent could not be reached in time.'),
        connect,
      )
      let clearLate = () => clearTimeout(late)
      let sending = sentBefore
      const connected = () => {
        sending = true
        clearLate()
        clearLate = whenSilent(silence, () => stop('remote_timeout', silent(silence)))
      }
      sent.on('socket', (socket) => {
        const ready = url.protocol === 'https:' ? 'secureConnect' : 'connect'
        if (socket.connecting) socket.once(ready, connected)
        else connected()
      })
      sent.on('response', () => clearLate())
      sent.on('response', resolve)
      sent.on('error', (error: NodeJS.ErrnoException) => reject(named(error, sending)))
      sent.on('close', () => {
        clearLate()
        signal?.removeEventListener('abort', leave)
        reject(signal?.aborted ? signal.reason : named(new Error('closed'), sending))
      })
      sent.end(init.body as string | undefined)
    })

  return async (to, init = {}) => {
    let url = new URL(to)
    if (url.origin !== base.origin) throw new RuntimeError('remote_refused', notConfigured)
    const { method = 'GET' } = init
    const isRead = method === 'GET' || method === 'HEAD'
    /** The remote has got the request, and may have done the work before it redirected. */
    const notFollowed = (refusal: RuntimeError) =>
      isRead
        ? refusal
        : new RuntimeError('remote_outcome_unknown', `${refusal.message} ${mayBeDone}`, {
            cause: refusal,
          })
    for (let redirects = 0; ; redirects++) {
      const message = await once(url, init, redirects > 0).catch((error: unknown) => {
        throw redirects > 0 && isRuntimeError(error, 'remote_refused') ? notFollowed(error) : error
      })
      const { statusCode: status = 0, headers } = message
      const { location } = headers
      const isRedirect = redirectStatuses.includes(status) && location !== undefined
      // A request other than GET or HEAD takes no 3xx as an answer.
      const isAnswer = isRead ? !isRedirect : status < 300 || status > 399
      if (isAnswer) return responseOf(message, silence)
      message.destroy()
      const next = isRedirect && URL.canParse(location, url) ? new URL(location, url) : undefined
      const told = `The remote agent answered with a redirect (status ${status})`
      if (next && next.origin !== base.origin)
        throw notFollowed(new RuntimeError('remote_refused', `${told} to another origin.`))
      // Another method or no body would be another request.
      if (!next || redirects >= redirectLimit || (!isRead && status < 307))
        throw notFollowed(new RuntimeError('remote_protocol', `${told} that cannot be followed.`))
      url = next
    }
  }
}

/** A timer that fires this many milliseconds late belongs to a process that was suspended or blocked. */
const suspended = 100
/** Milliseconds in which such a process reads what the remote has sent meanwhile. */
const readLimit = 2_000

/**
 * Calls `stop` after `ms` without a byte. After a suspension of the process, timers fire before the socket is read,
 * although it may contain data. In that case, calls `stop` `readLimit` later. Returns a function that cancels the timer.
 */
function whenSilent(ms: number, stop: () => void): () => void {
  const startedAt = performance.now()
  const fire = () => {
    if (performance.now() - startedAt > ms + suspended) timer = setTimeout(stop, readLimit)
    else stop()
  }
  let timer = setTimeout(fire, ms)
  return () => clearTimeout(timer)
}

const silent = (ms: number) => `The remote agent said nothing for ${ms / 1_000} s.`

function responseOf(message: IncomingMessage, silence: number): Response {
  const headers = new Headers()
  for (const [name, value] of Object.entries(message.headers))
    if (value !== undefined) headers.set(name, String(value))
  const { statusCode: status = 502 } = message
  if (status === 204 || status === 304) {
    message.resume()
    return new Response(null, { status, headers })
  }
  return new Response(bodyOf(message, silence), { status, headers })
}

/** Pulled, so that a remote that talks faster than we write has to wait. */
function bodyOf(message: IncomingMessage, silence: number): ReadableStream<Uint8Array> {
  message.on('error', () => {}) // told to who reads, also when nobody does
  const chunks = Readable.prototype[Symbol.asyncIterator].call(message)
  return new ReadableStream<Uint8Array>(
    {
      async pull(out) {
        const stop = () => message.destroy(new RuntimeError('remote_timeout', silent(silence)))
        const clearLate = whenSilent(silence, stop)
        try {
          const { done, value } = await chunks.next()
          if (done) out.close()
          else out.enqueue(new Uint8Array(value))
        } catch (error) {
          out.error(named(error as NodeJS.ErrnoException, true))
        } finally {
          clearLate()
        }
      },
      cancel() {
        message.destroy()
      },
    },
    { highWaterMark: 0 },
  )
}

/** Errors of connections by what they mean. `sent`: some of the request may have got through. */
function named(error: NodeJS.ErrnoException, sent: boolean): Error {
  const { cause } = error
  if (error instanceof RuntimeError) return error
  if (cause instanceof RuntimeError) return cause
  if (error.name === 'AbortError') return error
  return new RuntimeError(sent ? 'remote_cut' : 'remote_unavailable', undefined, { cause: error })
}

function headersOf(given: RequestInit['headers']): Record<string, string> {
  return Object.fromEntries(new Headers(given))
}

const redirectStatuses = [301, 302, 303, 307, 308]

const notConfigured = 'The request would leave the configured origin of the remote agent.'

const mayBeDone = 'It may have done the work. Check its URL in the configuration.'

/**
 * Returns the `remote_refused` or `remote_protocol` error behind a `remote_outcome_unknown` after a redirect, else
 * undefined. Requests that start no work fail with it. Such a request is not sent again: it would be redirected again.
 */
export function refusalOf(error: unknown): RuntimeError | undefined {
  if (!isRuntimeError(error, 'remote_outcome_unknown')) return undefined
  return isRuntimeError(error.cause) ? error.cause : undefined
}

const notPublic =
  'The address of the remote agent is private. Set `private: true` if it is meant to be.'

const publicOnly: LookupFunction = (host, options, done) => {
  lookup(host, { ...options, all: true }, (error, found) => {
    if (error) return done(error, '', 0)
    if (found.some(({ address }) => isPrivate(address)))
      return done(new RuntimeError('remote_refused', notPublic), '', 0)
    if (options.all) return done(null, found)
    const [{ address, family }] = found as [(typeof found)[0]]
    done(null, address, family)
  })
}

const blocked = new BlockList()
for (const range of [
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16'],
  ...['172.16.0.0/12', '192.0.0.0/24', '192.168.0.0/16', '198.18.0.0/15', '224.0.0.0/3'],
  ...['192.0.2.0/24', '198.51.100.0/24', '203.0.113.0/24'], // documentation
  '192.88.99.0/24', // relays for 6to4
]) {
  const [address, bits] = range.split('/') as [string, string]
  blocked.addSubnet(address, Number(bits), 'ipv4')
}
for (const range of [
  '2001::/23', // protocols: Teredo, ORCHID, benchmarks
  '2001:db8::/32', // documentation, and the next one too
  '3fff::/20',
  '2002::/16', // 6to4: an IPv4 address is inside, and it may be a private one
]) {
  const [address, bits] = range.split('/') as [string, string]
  blocked.addSubnet(address, Number(bits), 'ipv6')
}

/**
 * The only IPv6 addresses that are public. Loopback, link-local, site-local, unique-local, multicast, discard, and those with an
 * IPv4 address inside (NAT64, IPv4-compatible) are not among them.
 */
const globalUnicast = new BlockList()
globalUnicast.addSubnet('2000::', 3, 'ipv6')

/** Whether an address is of a private network, or reserved: nothing that a public name should point to. */
export function isPrivate(address: string): boolean {
  const plain = address.replace(/%.*$/, '') // the zone of a link-local address
  if (isIP(plain) !== 6) return blocked.check(plain, 'ipv4')
  const mapped = mappedIn(plain)
  if (mapped !== undefined) return isPrivate(mapped)
  return !globalUnicast.check(plain, 'ipv6') || blocked.check(plain, 'ipv6')
}

/** The IPv4 address in `::ffff:10.0.0.1`, however it is written. */
function mappedIn(address: string): string | undefined {
  const { hostname } = new URL(`http://[${address}]`)
  const [, high, low] = /^\[::ffff:([\da-f]{1,4}):([\da-f]{1,4})\]$/.exec(hostname) ?? []
  if (high === undefined || low === undefined) return undefined
  const [a, b] = [Number.parseInt(high, 16), Number.parseInt(low, 16)]
  return [a >> 8, a & 255, b >> 8, b & 255].join('.')
}

/** Names that can only mean a machine of ours: then private addresses are what was asked for. */
export function isPrivateName(host: string): boolean {
  const name = bare(host)
  if (isIP(name)) return isPrivate(name)
  return !name.includes('.') || /\.(localhost|local|internal|lan|home\.arpa)$/.test(name)
}

const bare = (host: string) => host.replace(/^\[|\]$/g, '').toLowerCase()
