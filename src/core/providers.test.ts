import { describe, expect, test } from 'vitest'
import { fakeClock } from '../../test/support/clock.ts'
import { RuntimeError } from './errors.ts'
import { Providers } from './providers.ts'

const never = new AbortController().signal
const down = new RuntimeError('network')

describe('places at a provider', () => {
  test('are taken in turn, and no more are inside than there are', async () => {
    const provider = new Providers(fakeClock(), { concurrent: 2 }).of('p')
    let inside = 0
    let most = 0
    const order: number[] = []
    await Promise.all(
      [1, 2, 3, 4, 5].map(async (n) => {
        const pass = await provider.enter(never)
        order.push(n)
        most = Math.max(most, ++inside)
        await new Promise((resolve) => setTimeout(resolve, 5))
        inside--
        pass.leave('answered')
        pass.leave('answered') // only the first counts
      }),
    )
    expect(most).toBe(2)
    expect(order).toEqual([1, 2, 3, 4, 5])
  })

  test('are waited for by so many and so long', async () => {
    const clock = fakeClock()
    const rules = { concurrent: 1, waiting: 1, patience: 1_000 }
    const provider = new Providers(clock, rules).of('p')
    const first = await provider.enter(never)
    const second = provider.enter(never)
    await expect(provider.enter(never)).rejects.toMatchObject({ code: 'model_busy' })
    second.catch(() => {})
    await clock.advance(1_000)
    await expect(second).rejects.toMatchObject({ code: 'model_busy' })
    first.leave('answered')
    ;(await provider.enter(never)).leave('answered') // nobody holds the place of who gave up
  })

  test('are not kept by who was stopped while it waited', async () => {
    const provider = new Providers(fakeClock(), { concurrent: 1 }).of('p')
    const first = await provider.enter(never)
    const abort = new AbortController()
    const second = provider.enter(abort.signal)
    abort.abort(new Error('enough'))
    await expect(second).rejects.toThrow('enough')
    first.leave('answered')
    ;(await provider.enter(never)).leave('answered')
  })
})

describe('the circuit of a provider', () => {
  const setup = () => {
    const clock = fakeClock()
    const providers = new Providers(clock, { failures: 3, within: 10_000, rest: 5_000 })
    const provider = providers.of('p')
    const fail = async (error = down) => (await provider.enter(never)).leave(error)
    return { clock, provider, fail, providers }
  }

  test('opens after failures in a row, lets one try after a rest, and closes when it answers', async () => {
    const { clock, provider, fail, providers } = setup()
    for (let n = 0; n < 3; n++) await fail()
    await expect(provider.enter(never)).rejects.toMatchObject({
      code: 'model_unavailable',
      retryAfter: 5,
    })
    expect([...providers.states()]).toEqual([['p', { isOpen: true, openClients: 0 }]])
    await clock.advance(5_000)
    const probe = await provider.enter(never)
    await expect(provider.enter(never)).rejects.toMatchObject({ code: 'model_unavailable' })
    probe.leave('answered')
    await Promise.all([provider.enter(never), provider.enter(never)])
    expect([...providers.states()]).toEqual([['p', { isOpen: false, openClients: 0 }]])
  })

  test('stays open when the one that tries fails, and tries again when it was stopped', async () => {
    const { clock, provider, fail } = setup()
    for (let n = 0; n < 3; n++) await fail()
    await clock.advance(5_000)
    await fail()
    await expect(provider.enter(never)).rejects.toMatchObject({ code: 'model_unavailable' })
    await clock.advance(5_000)
    ;(await provider.enter(never)).leave('stopped')
    ;(await provider.enter(never)).leave('answered')
    await provider.enter(never)
  })

  test('does not open for failures that are far apart, nor for what is an answer', async () => {
    const { clock, provider, fail } = setup()
    for (let n = 0; n < 5; n++) {
      await fail()
      await clock.advance(6_000)
    }
    for (let n = 0; n < 5; n++) await fail(new RuntimeError('rate_limit'))
    for (let n = 0; n < 5; n++) await fail(new RuntimeError('model_request'))
    await provider.enter(never)
  })

  test('is each provider’s own', async () => {
    const { fail, providers } = setup()
    for (let n = 0; n < 3; n++) await fail()
    await providers.of('other').enter(never)
  })

  test('is each credential’s own: a failing client key opens no other circuit', async () => {
    const { fail, providers } = setup()
    const bad = { owner: 'client', key: 'bad' } as const
    const operator = { owner: 'operator', key: 'digest' } as const
    for (let n = 0; n < 3; n++) (await providers.of('p', bad).enter(never)).leave(down)
    await expect(providers.of('p', bad).enter(never)).rejects.toMatchObject({
      code: 'model_unavailable',
    })
    for (const credential of [undefined, operator, { owner: 'client', key: 'good' } as const])
      (await providers.of('p', credential).enter(never)).leave('answered')
    expect(providers.states().get('p')).toEqual({ isOpen: false, openClients: 1 })
    await fail()
    ;(await providers.of('p', { owner: 'client', key: 'other' }).enter(never)).leave('answered')
    await fail()
    await fail() // an answer to another key does not close or reset this one
    expect(providers.states().get('p')).toEqual({ isOpen: true, openClients: 1 })
  })

  test('is kept for at most 1,000 client keys, and for those in use', async () => {
    const { providers } = setup()
    const gateOf = (n: number) => providers.of('p', { owner: 'client', key: `key ${n}` })
    const busy = gateOf(0)
    await busy.enter(never)
    const idle = gateOf(1)
    for (let n = 2; n < 1_100; n++) gateOf(n)
    expect(gateOf(0)).toBe(busy)
    expect(gateOf(1)).not.toBe(idle)
    expect(gateOf(1_099)).toBe(gateOf(1_099))
  })
})
