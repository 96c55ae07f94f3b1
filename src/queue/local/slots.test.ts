import { slotsContract } from '../../../test/contracts/slots.contract.ts'
import { localSlots } from './slots.ts'

slotsContract('the local', async (limits) => {
  const slots = localSlots(limits)
  return { servers: [slots, slots], dispose: async () => {} }
})
