import type { Job, Queue as Jobs, JobsOptions, Worker } from 'bullmq'
import type { Redis } from 'ioredis'
import {
  closeRedis,
  connectRedis,
  isReady,
  type RedisLog,
  watchRedis,
} from '../../bus/redis/connection.ts'
import { keyOf } from '../../bus/redis/keys.ts'
import type { Queue } from '../../core/store.ts'
import { type Clock, systemClock } from '../../lib/clock.ts'
import { localQueue } from '../local/queue.ts'

export interface BullmqQueueOptions {
  url: string
  log: RedisLog
  clock?: Clock
  /** Threads looked at by this server at once. Legs are not in this: they go on when a look is done. */
  concurrency?: number
  /** Before every key. */
  prefix?: string
}

/** A queue that lets go of its connections. What is rung afterwards is not heard. */
export interface BullmqQueue extends Queue {
  close(): Promise<void>
}

interface Look {
  threadId: string
}

/** A job that Redis has not taken yet. */
interface Sending {
  since: number
  /** Rings that came meanwhile. */
  again: (() => void) | undefined
  /** Does it here. */
  heard: () => void
}

/** Milliseconds after which a job that Redis has not taken is done here instead. */
const patience = 500
/** Jobs on their way to Redis; more are heard here. */
const inFlightLimit = 1_000
/** Milliseconds for which a thread that was rung is not put in line again, until it is looked at. */
const oneRing = 10_000
/** Delayed rings of a thread that are this close are one. */
const grain = 100

/**
 * Doorbells and timers of many servers, on BullMQ: a job only says *look at thread T*, to whichever
 * server is free. Lost, doubled and late jobs change nothing: the lease decides who drives, and the
 * runtime's sweep finds what was forgotten. While Redis is away a server hears its own rings.
 */
export async function bullmqQueue(options: BullmqQueueOptions): Promise<BullmqQueue> {
  const { url, log, clock = systemClock, concurrency = 64, prefix = 'handrail' } = options
  const { Queue: JobQueue, Worker: JobWorker } = await import('bullmq')
  // BullMQ waits for Redis where we do not: what is given to it stays little.
  const patient = { enableOfflineQueue: true, autoResendUnfulfilledCommands: true }
  const redis = await connectRedis(
    { url, log, name: 'handrail-queue' },
    { ...patient, maxRetriesPerRequest: null },
  )
  // Connections that BullMQ makes of ours: they begin by themselves, and we can end them.
  const others = new Set<Redis>()
  const duplicate = redis.duplicate.bind(redis)
  redis.duplicate = (more) => {
    const other = duplicate({ ...more, lazyConnect: false })
    others.add(other)
    return other
  }
  const shared = { connection: redis, prefix }
  const here = localQueue(clock)
  const looks = gate()
  const sending = new Map<string, Sending>()
  /** Jobs done here because Redis took too long; until it has answered, it counts as away. */
  let late = 0
  const closed = new AbortController()
  let jobs: Jobs<Look> | undefined

  /** Made when Redis is there for the first time: BullMQ does not get over a bad beginning. */
  function open(): void {
    if (jobs || closed.signal.aborted) return
    jobs = new JobQueue<Look>('looks', {
      ...shared,
      streams: { events: { maxLen: 10 } }, // nobody reads them
      defaultJobOptions: { removeOnComplete: true, removeOnFail: true },
    })
    jobs.on('error', () => {}) // the connection has said so
  }
  redis.on('ready', open)
  if (isReady(redis)) open()

  /** Gives a job to Redis; `heard` does it here if that cannot be, or takes too long. */
  function send(key: string, threadId: string, more: JobsOptions, heard: () => void): void {
    if (!jobs || !isReady(redis) || late > 0 || sending.size >= inFlightLimit) {
      heard()
      return
    }
    const one: Sending = { since: clock.monotonic(), again: undefined, heard }
    sending.set(key, one)
    const done = (taken: boolean) => {
      if (sending.get(key) !== one) {
        late--
        return
      }
      sending.delete(key)
      if (!taken) heard()
      else one.again?.()
    }
    jobs.add('look', { threadId }, more).then(
      () => done(true),
      () => done(false),
    )
  }

  function ring(threadId: string, near = false): void {
    const key = keyOf(threadId)
    const under = sending.get(key)
    if (near) here.ring(threadId)
    else if (under) under.again = () => ring(threadId)
    else {
      const deduplication = { id: key, ttl: oneRing }
      send(key, threadId, { deduplication }, () => here.ring(threadId))
    }
  }

  /** What Redis takes too long for is heard here; should it take it yet, no harm is done. */
  async function watch(): Promise<void> {
    const check = watchRedis(redis, clock.monotonic)
    for (;;) {
      await clock.sleep(patience, closed.signal)
      check()
      for (const [key, { since, heard }] of sending) {
        if (clock.monotonic() - since < patience) continue
        sending.delete(key)
        late++
        heard()
      }
    }
  }
  watch().catch(() => {})

  return {
    ring,

    ringAt(threadId, at) {
      const time = Math.ceil(at / grain) * grain
      const delay = time - clock.now()
      if (delay <= 0) return ring(threadId)
      const jobId = `${keyOf(threadId)}@${time}`
      if (sending.has(jobId)) return
      send(jobId, threadId, { delay, jobId }, () => here.ringAt(threadId, at))
    },

    async serve(worker, signal) {
      const look = (threadId: string) => looks(threadId, worker)
      const process = async (job: Job<Look>) => {
        // From here on a ring is news; if this fails, it is news again in a while.
        if (job.opts.deduplication) await job.removeDeduplicationKey().catch(() => {})
        await look(job.data.threadId)
      }
      let taking: Worker<Look> | undefined
      const begin = () => {
        if (taking || signal.aborted) return
        taking = new JobWorker<Look>('looks', process, {
          ...shared,
          concurrency,
          // Jobs of a server that died are taken up in about six seconds, however often it happens.
          lockDuration: 5_000,
          stalledInterval: 2_000,
          maxStalledCount: 5,
          removeOnComplete: { count: 0 },
          removeOnFail: { count: 0 },
        })
        taking.on('error', () => {})
      }
      redis.on('ready', begin)
      if (isReady(redis)) begin()
      await here.serve(look, signal)
      redis.off('ready', begin)
      await stop(taking)
    },

    async close() {
      // What was rung last is what others are to go on with. `watch` gives up on what takes too long.
      while (sending.size > 0) await clock.sleep(10)
      closed.abort('closed')
      redis.off('ready', open)
      sending.clear()
      await jobs?.close().catch(() => {})
      closeRedis(redis)
    },
  }

  /** Takes no more jobs, and waits for those it has; not for a Redis that does not answer. */
  async function stop(taking: Worker<Look> | undefined): Promise<void> {
    if (!taking) return
    const late = new AbortController()
    const patient = clock.sleep(3_000, late.signal).catch(() => {})
    await Promise.race([taking.close().catch(() => {}), patient])
    late.abort('in time')
    for (const other of others) closeRedis(other)
    others.clear()
  }
}

/** One call per thread at a time; who comes meanwhile gets one more call, together. */
function gate() {
  type Call = (threadId: string) => Promise<void>
  const calls = new Map<string, { now: Promise<void>; next?: Promise<void> }>()
  const run = async (threadId: string, worker: Call): Promise<void> => {
    try {
      await worker(threadId)
    } catch {} // the worker logs; the sweep comes back to it
  }
  return async (threadId: string, worker: Call): Promise<void> => {
    const one = calls.get(threadId)
    if (one) {
      one.next ??= one.now.then(() => run(threadId, worker))
      await one.next
      return
    }
    const first = { now: run(threadId, worker) } as { now: Promise<void>; next?: Promise<void> }
    calls.set(threadId, first)
    await first.now
    while (first.next) {
      first.now = first.next
      first.next = undefined
      await first.now
    }
    calls.delete(threadId)
  }
}
