import { busContract } from '../../../test/contracts/bus.contract.ts'
import { streamsContract } from '../../../test/contracts/streams.contract.ts'
import { localBus } from './bus.ts'

busContract('the local', async () => {
  const bus = localBus()
  return { servers: [bus, bus, bus], dispose: () => bus.close() }
})

const bus = localBus()
streamsContract('the local bus', () => [bus, bus, bus], 200)
