import { expect, test } from 'vitest'
import { fakeClock } from '../../../test/support/clock.ts'
import { type Connection, SessionGone } from './connection.ts'
import { Connections } from './connections.ts'

const signal = new AbortController().signal

/** Connections that say whose they are, and that can be ended from outside. */
function stage(options: { most?: number; serial?: boolean; fails?: () => boolean } = {}) {
  const { fails = () => false, ...rest } = options
  const clock = fakeClock()
  const opened: string[] = []
  const closed: string[] = []
  const ends = new Map<string, AbortController>()
  const open = async (tenant: string): Promise<Connection> => {
    opened.push(tenant)
    if (fails()) throw new Error('nobody is there')
    const gone = new AbortController()
    ends.set(tenant, gone)
    const close = async () => {
      closed.push(tenant)
      gone.abort()
    }
    return { gone: gone.signal, close, list: async () => [], call: async () => ({}) }
  }
  const pool = new Connections({ open, clock, idle: 1_000, ...rest })
  const touch = (tenant: string) => pool.use(tenant, signal, async () => tenant)
  return { clock, opened, closed, ends, pool, touch }
}

test('each tenant has one, which is closed when nobody uses it for a while', async () => {
  const { pool, opened, closed, touch, clock } = stage()
  await Promise.all([touch('a'), touch('a'), touch('b')])
  expect(opened).toEqual(['a', 'b'])
  await clock.advance(800)
  await touch('b')
  await clock.advance(500)
  expect(closed).toEqual(['a'])
  await touch('a')
  expect(opened).toEqual(['a', 'b', 'a'])
  await pool.close()
  expect(closed.sort()).toEqual(['a', 'a', 'b'])
})

test('they are not more than may be: an idle one makes room, and busy ones do not', async () => {
  const { pool, closed, touch } = stage({ most: 2 })
  await touch('a')
  await touch('b')
  await touch('c')
  expect(closed).toEqual(['a'])
  let finish = () => {}
  const busy = new Promise<void>((resolve) => {
    finish = resolve
  })
  const held = [pool.use('b', signal, () => busy), pool.use('c', signal, () => busy)]
  await expect(touch('d')).rejects.toThrow('Too many use this MCP server')
  finish()
  await Promise.all(held)
  await touch('d')
  expect(pool.size).toBe(2)
})

test('one that ended is opened anew; one that cannot be opened is left alone for a while', async () => {
  let away = false
  const { opened, ends, touch, clock } = stage({ fails: () => away })
  await touch('a')
  ends.get('a')!.abort()
  await touch('a')
  expect(opened).toHaveLength(2)
  away = true
  ends.get('a')!.abort()
  await expect(touch('a')).rejects.toThrow('nobody is there')
  await expect(touch('a')).rejects.toThrow('It is tried again soon')
  expect(opened).toHaveLength(3)
  await clock.advance(600)
  await expect(touch('a')).rejects.toThrow('nobody is there')
  away = false
  await clock.advance(600)
  await expect(touch('a')).rejects.toThrow('It is tried again soon') // longer, the second time
  await clock.advance(600)
  expect(await touch('a')).toBe('a')
})

test('a session that the server forgot is made anew, once', async () => {
  const { opened, pool } = stage()
  let calls = 0
  const work = async () => {
    if (++calls === 1) throw new SessionGone('gone')
    return calls
  }
  expect(await pool.use('a', signal, work)).toBe(2)
  expect(opened).toEqual(['a', 'a'])
})

test('in turn, where that is wanted; who is told to stop while it waits has not begun', async () => {
  const { pool } = stage({ serial: true })
  const order: string[] = []
  let finish = () => {}
  const busy = new Promise<void>((resolve) => {
    finish = resolve
  })
  const first = pool.use('a', signal, async () => {
    order.push('first begins')
    await busy
    order.push('first ends')
  })
  const stop = new AbortController()
  const second = pool.use('a', stop.signal, async () => void order.push('second'))
  const third = pool.use('a', signal, async () => void order.push('third'))
  await new Promise((resolve) => setImmediate(resolve))
  stop.abort(new Error('told to stop'))
  await expect(second).rejects.toThrow('told to stop')
  finish()
  await Promise.all([first, third])
  expect(order).toEqual(['first begins', 'first ends', 'third'])
})
