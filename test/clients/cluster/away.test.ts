import { afterAll, beforeAll, describe } from 'vitest'
import { postgresAway } from './postgres-away.stories.ts'
import { redisAway } from './redis-away.stories.ts'
import { secrets } from './secrets.stories.ts'
import { openCluster, type TestCluster } from './support.ts'

let cluster: TestCluster

beforeAll(async () => {
  // What is committed must be with the kernel: the database is killed here, the machine is not.
  cluster = await openCluster({ settings: 'fsync = off' })
}, 120_000)

afterAll(() => cluster.stop())

describe('three servers', () => {
  const all = () => cluster
  describe('and Redis away', () => redisAway(all))
  describe('and Postgres away', () => postgresAway(all))
  describe('and the secrets of a request', () => secrets(all))
})
