import { findContract } from '../../../test/contracts/find.contract.ts'
import { storeContract } from '../../../test/contracts/store.contract.ts'
import { type Clock, systemClock } from '../../lib/clock.ts'
import { memoryStore } from './store.ts'

const open = async (clock: Clock = systemClock) => {
  const store = memoryStore({ clock })
  return { store, dispose: () => store.close() }
}

storeContract('memory', open)
findContract('memory', open)
