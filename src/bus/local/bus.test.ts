import { busContract } from '../../../test/contracts/bus.contract.ts'
import { localBus } from './bus.ts'

busContract('the local', async () => {
  const bus = localBus()
  return { servers: [bus, bus, bus], dispose: () => bus.close() }
})
