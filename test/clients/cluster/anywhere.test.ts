import { afterAll, beforeAll, describe } from 'vitest'
import { editing } from './editing.stories.ts'
import { handover } from './handover.stories.ts'
import { once } from './once.stories.ts'
import { roundRobin } from './round-robin.stories.ts'
import { stopping } from './stopping.stories.ts'
import { openCluster, type TestCluster } from './support.ts'

let cluster: TestCluster

beforeAll(async () => {
  cluster = await openCluster()
}, 120_000)

afterAll(() => cluster.stop())

describe('three servers on one Postgres and one Redis', () => {
  const all = () => cluster
  handover(all)
  once(all)
  stopping(all)
  editing(all)
  describe('without sticky sessions', () => roundRobin(all))
})
