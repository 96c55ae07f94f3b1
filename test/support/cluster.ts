import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { serve } from '@hono/node-server'
import { toolLoop } from '../../src/agents/tool-loop/agent.ts'
import { redisBus } from '../../src/bus/redis/bus.ts'
import type { Model } from '../../src/core/model.ts'
import { defaultPolicy } from '../../src/core/policy.ts'
import { createRuntime } from '../../src/core/runtime.ts'
import type { Store } from '../../src/core/store.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { bullmqQueue } from '../../src/queue/bullmq/queue.ts'
import { redisSlots } from '../../src/queue/bullmq/slots.ts'
import { createServer } from '../../src/server.ts'
import { type Settings, toolsFrom } from '../../src/settings.ts'
import { memoryStore } from '../../src/stores/memory/store.ts'
import { chatsWire } from '../../src/wires/chats/wire.ts'
import { Heartbeats } from '../../src/wires/sse.ts'
import { keys } from './chained.ts'
import { chatsClient } from './chats.ts'
import { checkChain } from './journal.ts'
import { type RedisServer, startRedis } from './redis.ts'

const silent = { info() {}, warn() {}, error() {} }

export interface ClusterServer extends ReturnType<typeof chatsClient> {
  runtime: ReturnType<typeof createRuntime>
  close(): Promise<void>
}

export interface Cluster {
  redis: RedisServer
  store: Store
  servers: ClusterServer[]
  close(): Promise<void>
}

/** Several servers in this process that share a store in memory and a real Redis, and nothing else. */
export async function cluster(
  count: number,
  settings: Pick<Settings, 'model' | 'tools'>,
  limits: { total?: number } = {},
): Promise<Cluster> {
  const redis = await startRedis()
  const store = Object.assign(memoryStore({ clock: systemClock }), { shared: true })
  const server = async (_: unknown, n: number): Promise<ClusterServer> => {
    const shared = { url: redis.url, log: silent }
    const bus = await redisBus({ ...shared, serverId: `server${n}`, poll: 300 })
    const queue = await bullmqQueue(shared)
    const slots = await redisSlots({ ...shared, ...limits })
    const runtime = createRuntime({
      ...{ store, bus, queue, slots, log: silent, serverId: `server${n}`, audit: keys },
      agents: [
        {
          agent: toolLoop({ name: 'assistant' }),
          model: settings.model as Model,
          tools: toolsFrom(settings.tools ?? []),
          policy: defaultPolicy,
        },
      ],
      leaseTtl: 2_000,
      sweepEvery: 1_000,
      plainIds: true,
    })
    const served = runtime.serve()
    const routes = chatsWire(runtime, new Heartbeats())
    const more = { apiKeys: new Map(), bodyLimit: 1e6, origins: new Set<string>(), log: silent }
    const { fetch } = createServer({ routes, open: [], ...more })
    const http = serve({ fetch, port: 0, hostname: '127.0.0.1' })
    await once(http, 'listening')
    return {
      runtime,
      ...chatsClient(`http://127.0.0.1:${(http.address() as AddressInfo).port}`),
      async close() {
        http.close()
        await runtime.stop(0)
        await served
        await slots.close()
        await queue.close()
        await bus.close()
      },
    }
  }
  const servers = await Promise.all(Array.from({ length: count }, server))
  return {
    redis,
    store,
    servers,
    async close() {
      await Promise.all(servers.map((one) => one.close()))
      const all = { tenant: 'default', owner: 'local', limit: 1_000 }
      for (const { threadId } of (await store.threads(all)).rows)
        await checkChain(store, keys, threadId)
      await redis.stop()
    },
  }
}
