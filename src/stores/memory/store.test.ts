import { storeContract } from '../../../test/contracts/store.contract.ts'
import { systemClock } from '../../lib/clock.ts'
import { memoryStore } from './store.ts'

storeContract('memory', async (clock = systemClock) => {
  const store = memoryStore({ clock })
  return { store, dispose: () => store.close() }
})
